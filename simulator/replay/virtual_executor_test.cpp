#include "simulator/replay/virtual_executor.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// A byte takes one nanosecond over the link, two to write, and three to read.
constexpr Link kLink{{1e9, 0}, {1e9, 0}, 0, false, {{0.5e9, 0}, {1e9 / 3, 0}}};
constexpr Bytes kBytes = 100;

StepProgram program_with_one_tensor() {
  ProgramSketch sketch;
  sketch.save(sketch.alloc(kBytes));
  sketch.backward_end();
  return sketch.program();
}

/// Notes the stalls.
class StallListener final : public ReplayListener {
 public:
  void on_stall(const Stall& stall) override { stalls.push_back(stall); }
  std::vector<Stall> stalls;
};

/// The order of a replay's reads is that of its program, so it reads nothing in vain. A run may: when its
/// backward leaves tensors out.
TEST(VirtualExecutor, WaitsForAReadThatNoCopyUses) {
  const Step step(program_with_one_tensor());
  StallListener listener;
  VirtualExecutor executor(step, preset_policy("keep"), kLink, {}, {}, &listener);
  const CopyCommand copy = {.tensor = 0, .copy = 0, .bytes = kBytes};
  const std::vector<Command> writes = {TakeDisk{copy},  CopyOut{copy},   WaitOut{copy},
                                       WriteDisk{copy}, WaitWrite{copy}, FreeHost{copy}};
  for (const Command& command : writes) executor.execute(command);
  ASSERT_EQ(executor.clock().now(), 100 + 200);
  executor.execute(ReadDisk{copy});
  ASSERT_EQ(executor.clock().now(), 100 + 200) << "the read runs beside the host";
  listener.stalls.clear();
  executor.execute(WaitRead{copy});
  EXPECT_EQ(executor.clock().now(), 100 + 200 + 300);
  ASSERT_EQ(listener.stalls.size(), 1U);
  EXPECT_EQ(listener.stalls[0].reason, StallReason::kDisk);
  EXPECT_EQ(listener.stalls[0].duration_ns, 300);
}

}  // namespace
}  // namespace offprof
