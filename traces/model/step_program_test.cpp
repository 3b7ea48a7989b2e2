#include "traces/model/step_program.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

using Kind = StreamCommand::Kind;

/// Returns a command before event `event` that comes 1 ns of the host's time after the last one.
StreamCommand command(Kind kind, std::int32_t stream, std::int32_t point, std::int32_t event) {
  return {.kind = kind, .stream = stream, .point = point, .event = event, .before = {1, 0, 1}};
}

TEST(DropUnneededPoints, KeepsPointsThatOtherStreamsOrTheHostWaitFor) {
  StepProgram program;
  program.work.assign(2, {5, 0, 5});
  program.stream_commands = {
      command(Kind::kRecord, 1, 0, 0),   command(Kind::kWait, 1, 0, 0),  // by the stream itself
      command(Kind::kRecord, 1, 1, 0),                                   // nobody waits for it
      command(Kind::kRecord, 1, 2, 0),   command(Kind::kWait, 0, 2, 1),
      command(Kind::kHostWait, 0, 7, 1),  // recorded before the step
      command(Kind::kRecord, 0, 3, 1),   command(Kind::kHostWait, 0, 3, 1),
      command(Kind::kKernel, 2, -1, 1),
  };
  drop_unneeded_points(program);
  std::vector<StreamCommand> kept = {
      command(Kind::kRecord, 1, 0, 0),   command(Kind::kWait, 0, 0, 1),    command(Kind::kRecord, 0, 1, 1),
      command(Kind::kHostWait, 0, 1, 1), command(Kind::kKernel, 2, -1, 1),
  };
  kept[0].before.host_ns = kept[0].before.path_ns = 4;  // of those that are gone
  kept[2].before.host_ns = kept[2].before.path_ns = 2;
  EXPECT_EQ(program.stream_commands, kept);
  EXPECT_EQ(program.work, (std::vector<Work>(2, {5, 0, 5})));
}

TEST(DropUnneededPoints, KeepsPointsThatFreesWaitFor) {
  StepProgram program;
  program.work.assign(1, {5, 0, 5});
  program.stream_commands = {command(Kind::kRecord, 1, 0, 0), command(Kind::kRecord, 1, 1, 0),
                             command(Kind::kRecord, 0, 2, 0)};
  program.free_points = {{7, 1}, {7, 9}, {8, 2}};  // 9 was recorded before the step
  drop_unneeded_points(program);
  EXPECT_EQ(program.stream_commands.size(), 2U);
  EXPECT_EQ(program.free_points, (std::vector<FreePoint>{{7, 0}, {8, 1}}));
}

TEST(DropUnneededPoints, GivesTheWorkBeforeTheLastToItsEvent) {
  StepProgram program;
  program.work.assign(2, {5, 0, 5});
  program.stream_commands = {command(Kind::kRecord, 1, 0, 0), command(Kind::kKernel, 1, -1, 1)};
  drop_unneeded_points(program);
  EXPECT_EQ(program.work, (std::vector<Work>{{6, 0, 6}, {5, 0, 5}}));
  EXPECT_EQ(program.stream_commands, std::vector<StreamCommand>{command(Kind::kKernel, 1, -1, 1)});
}

TEST(ScaleCompute, ScalesCommandsOfStreamsToo) {
  StepProgram program;
  program.events.assign(2, {EventKind::kNodeEnd, 0, 5});
  program.work.assign(2, {3, 5, 5, 7, 5});
  program.stream_commands = {
      {.kind = Kind::kKernel, .stream = 1, .duration_ns = 10, .event = 0},
      {.kind = Kind::kKernel, .stream = 1, .duration_ns = 20, .event = 1, .before = {2, 0, 2}}};
  scale_compute(program, 3, 1, 2);
  EXPECT_EQ(program.stream_commands[0].duration_ns, 10);
  EXPECT_EQ(program.stream_commands[1].duration_ns, 60);
  EXPECT_EQ(program.stream_commands[1].before, (Work{6, 0, 6}));
}

TEST(ScaleCompute, KeepsSumsExactDespiteRounding) {
  StepProgram program;
  for (int i = 0; i < 3; ++i) program.events.push_back({EventKind::kNodeEnd, 0, 5});
  scale_compute(program, 0.5);
  Nanoseconds sum = 0;
  for (const Event& event : program.events) {
    EXPECT_GE(event.compute_ns, 2);
    sum += event.compute_ns;
  }
  EXPECT_EQ(sum, 8);  // 7.5
}

TEST(ScaleCompute, ScalesWorkToo) {
  StepProgram program;
  program.events.assign(3, {EventKind::kNodeEnd, 0, 5});
  program.work.assign(3, {3, 5, 5, 7, 5});
  scale_compute(program, 2, 1, 3);
  EXPECT_EQ(program.work[0], (Work{3, 5, 5, 7, 5}));
  EXPECT_EQ(program.work[2], (Work{6, 10, 10, 14, 10}));
  EXPECT_EQ(program.events[0].compute_ns, 5);
  EXPECT_EQ(program.events[1].compute_ns, 10);
}

TEST(ScaleCompute, KeepsSumsOfWorkExactDespiteRounding) {
  StepProgram program;
  program.events.assign(4, {EventKind::kNodeEnd, 0, 5});
  program.work.assign(4, {5, 5, 5, Work::kNoWait, 5});
  scale_compute(program, 0.5);
  Work all;
  for (const Work& work : program.work) all = then(all, work);
  EXPECT_EQ(all, (Work{10, 10, 10, Work::kNoWait, 10}));
}

}  // namespace
}  // namespace offprof
