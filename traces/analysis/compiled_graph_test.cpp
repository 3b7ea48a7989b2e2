#include "traces/analysis/compiled_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/layered_trace.h"

namespace offprof {
namespace {

StepProgram saved_by(const std::string& op) {
  return layered_trace({{"", 600, op}, {"", 300, op}, {"", 100, "aten::mm"}}).program;
}

/// Lets one node take all tensors back.
void unpack_at_once(StepProgram& program) {
  const auto is_node_end = [](const Event& event) { return event.kind == EventKind::kNodeEnd; };
  const auto last = std::ranges::find_if(program.events.rbegin(), program.events.rend(), is_node_end);
  Event end = *last;
  std::erase_if(program.events, is_node_end);
  program.events.push_back(end);
}

TEST(CompiledGraph, TakesBackAtOnceWhatItSaved) {
  StepProgram program = saved_by("CompiledFunction");
  EXPECT_DOUBLE_EQ(share_of_compiled_graph(program), 0.6);  // each tensor has a node of its own
  unpack_at_once(program);
  EXPECT_DOUBLE_EQ(share_of_compiled_graph(program), 0.9);
}

TEST(CompiledGraph, HoldsNoParametersAndNothingOfOtherOperators) {
  StepProgram program = saved_by("CompiledFunction");
  unpack_at_once(program);
  program.saved[0].movability = Movability::kParameter;
  EXPECT_DOUBLE_EQ(share_of_compiled_graph(program), 0.75);  // 300 of 400
  StepProgram others = saved_by("aten::mm");
  unpack_at_once(others);
  EXPECT_EQ(share_of_compiled_graph(others), 0);
  EXPECT_EQ(share_of_compiled_graph(StepProgram{}), 0);
}

}  // namespace
}  // namespace offprof
