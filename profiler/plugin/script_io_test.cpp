#include "profiler/plugin/script_io.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

ScriptRequest request() {
  ScriptRequest request;
  request.run.model_path = "train.py";
  request.run.device = "virtual:h200";
  request.run.policy = preset_policy("trl");
  request.run.settings.steps = 7;
  request.run.disk = DiskRequest{.folder = "/scratch", .speed = {{2e9, 3, 4}, {1e9, 5, 6}}};
  request.arguments = {"--epochs", "3", "\xff"};
  request.virtual_gpu = ScriptGpu{"h200", "/lib/virtual_gpu", true, "dgx-h100"};
  request.rank = ScriptRank{3, 8, "/tmp/said", "/tmp/collectives.json"};
  request.compared = {preset_policy("keep"), preset_policy("offload")};
  request.shape = "largest";
  request.applied_code = "/exported.py";
  return request;
}

TEST(ScriptRequest, ComesBackAsItWasWritten) {
  const ScriptRequest before = request();
  const ScriptRequest after = parse_script_request(format_script_request(before), "request");
  EXPECT_EQ(after.run.model_path, before.run.model_path);
  EXPECT_EQ(after.run.device, before.run.device);
  EXPECT_EQ(after.run.policy, before.run.policy);
  EXPECT_EQ(after.run.settings, before.run.settings);
  ASSERT_TRUE(after.run.disk);
  EXPECT_EQ(after.run.disk->folder, before.run.disk->folder);
  EXPECT_EQ(after.run.disk->speed, before.run.disk->speed);
  EXPECT_EQ(after.compared, before.compared);
  EXPECT_EQ(after.shape, before.shape);
  EXPECT_EQ(after.applied_code, before.applied_code);
  ASSERT_TRUE(after.virtual_gpu);
  EXPECT_EQ(after.virtual_gpu->libraries, before.virtual_gpu->libraries);
  ASSERT_TRUE(after.rank);
  EXPECT_EQ(after.rank->rank, 3);
  EXPECT_EQ(after.rank->world_size, 8);
  EXPECT_EQ(after.rank->said, "/tmp/said");
}

TEST(ScriptRequest, NamesTheProgramAndItsRank) {
  ScriptRequest program;
  program.run.model_path = "scripts/train.py";
  EXPECT_EQ(program_name(program), "train.py");
  program.rank = ScriptRank{3, 8, ""};
  EXPECT_EQ(program_name(program), "train.py, rank 3 of 8");
}

TEST(ScriptRequest, RejectsTheTextOfAnotherFile) {
  EXPECT_THAT([] { parse_script_request(format_script_outcome({}), "request"); },
              ThrowsMessage<Error>(HasSubstr("offprof.script_outcome/1")));
}

TEST(ScriptOutcome, ComesBackAsItWasWritten) {
  ScriptOutcome before;
  before.refusal = MemoryRefusal{10, 20, 30, 4};
  before.has_replayed_commands = false;
  before.saved_by_user_hooks = 12;
  before.groups = {{9, 3, 4096, true}, {1, 4, 8192, false}};
  before.skipped_steps = 2;
  Metrics measured;
  measured.device_peak_bytes = 4096;
  before.compared = {{preset_policy("offload"), measured}};
  const ScriptOutcome after = parse_script_outcome(format_script_outcome(before), "outcome");
  EXPECT_EQ(after.refusal->reloaded, 4);
  EXPECT_FALSE(after.has_replayed_commands);
  EXPECT_EQ(after.saved_by_user_hooks, 12);
  ASSERT_EQ(after.groups.size(), 2U);
  EXPECT_TRUE(after.groups[0].is_recorded);
  EXPECT_EQ(after.groups[1].peak_bytes, 8192);
  EXPECT_EQ(after.skipped_steps, 2);
  EXPECT_EQ(after.compared[0].measured.device_peak_bytes, 4096);
}

TEST(ScriptOutcome, CarriesTheErrorOfAProgramThatCannotBeRecorded) {
  ScriptOutcome before;
  before.error = environment_error("no torch", "install it");
  const ScriptOutcome after = parse_script_outcome(format_script_outcome(before), "outcome");
  ASSERT_TRUE(after.error);
  EXPECT_EQ(after.error->kind(), ErrorKind::kEnvironment);
  EXPECT_STREQ(after.error->what(), "no torch");
  EXPECT_EQ(after.error->hint(), "install it");
}

}  // namespace
}  // namespace offprof
