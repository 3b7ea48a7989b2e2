#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// A node releases an unpacked tensor; after that, but before the node's end, memory is allocated.
ProgramSketch early_let_go() {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  sketch.unpack(a);
  sketch.free_unpacked(a);
  sketch.free(sketch.alloc(70));
  sketch.node_end();
  sketch.release(a);
  return sketch;
}

Bytes peak_under(const Policy& policy) {
  const Step step(early_let_go().program());
  return replay(step, policy, kAnyLink).metrics.device_peak_bytes.value();
}

TEST(EarlyLetGo, FreesMemoryThatNobodyElseHolds) {
  Policy keeping_trl = preset_policy("trl");
  keeping_trl.threshold_bytes = 200;
  EXPECT_EQ(peak_under(keeping_trl), 1100) << "TRL's rules hold nothing that was unpacked";
}

TEST(EarlyLetGo, KeepsMemoryThatAutogradStillHolds) {
  EXPECT_EQ(peak_under(preset_policy("keep")), 1170);
}

}  // namespace
}  // namespace offprof
