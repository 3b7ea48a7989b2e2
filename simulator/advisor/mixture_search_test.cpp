#include "simulator/advisor/mixture_search.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

constexpr std::size_t kModules = 80;
constexpr std::size_t kHeldFrom = 40;  ///< the first module whose storage is held
constexpr Bytes kFreed = 3000;
constexpr Bytes kHeld = 1000;

/// Returns a step that saves a storage of 3000 bytes in each of 40 modules, which the program frees, and then
/// one of 1000 bytes in each of 40 others, which it holds until their backward has ended: what is copied back
/// of these comes on top. Each copy ends before the next module.
Trace step_that_holds_some() {
  ProgramSketch sketch;
  std::vector<SavedId> tensors;
  std::vector<std::int32_t> held;
  sketch.phase("forward");
  for (std::size_t module = 0; module < kModules; ++module) {
    const std::int32_t storage = sketch.alloc(module < kHeldFrom ? kFreed : kHeld);
    tensors.push_back(sketch.save(storage));
    if (module < kHeldFrom)
      sketch.free(storage);
    else
      held.push_back(storage);
    sketch.compute(100'000);
    sketch.node_end();
  }
  sketch.phase("backward");
  for (std::size_t module = kModules; module-- > 0;) {
    sketch.compute(100'000);
    sketch.node(tensors[module]);
    if (module == kHeldFrom)
      for (const std::int32_t storage : held) sketch.free(storage);
  }
  sketch.backward_end();
  Trace trace = sample_trace();
  trace.environment.link = {{1, 0}, {1, 0}};
  trace.program = sketch.program();
  return trace;
}

TEST(MixtureSearch, OffloadsAPartWhereAllTakesMore) {
  const Trace trace = step_that_holds_some();
  const AdviceGoal goal{.most_memory = 43'500};
  const Candidate best =
      search_mixtures(TraceSteps(trace), trace.environment.link, goal, SearchExtent::kCoarse, 1).best;
  EXPECT_TRUE(is_within(best.predicted, goal)) << device_bytes_taken(best.predicted);
  EXPECT_TRUE(best.policy.tensors) << "all are offloaded";
}

}  // namespace
}  // namespace offprof
