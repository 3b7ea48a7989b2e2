#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/cli_run.h"
#include "tests/support/layered_trace.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"
#include "traces/io/pickle_writer.h"

namespace offprof {
namespace {

using testing::HasSubstr;

class ImportCommandTest : public testing::Test {
 protected:
  CliRun import_text(const std::string& source, const std::string& text,
                     const std::vector<std::string>& more = {}) const {
    write_file(config_, text);
    std::vector<std::string> words = {"import", config_, "--from", source};
    words.insert(words.end(), more.begin(), more.end());
    return run_words(words);
  }
  std::string trace() const {
    write_trace(folder_ / "trace.json", layered_trace({{"a", 4096}, {"b", 8192}, {"c", 4096}}));
    return folder_ / "trace.json";
  }

  TemporaryFolder folder_{"import_command"};
  std::string config_ = folder_ / "config";
};

TEST_F(ImportCommandTest, WritesThePolicyToStandardOutput) {
  const CliRun run = import_text("trl", "activation_offloading: true\n");
  EXPECT_EQ(run.status, 0);
  EXPECT_EQ(parse_policy_file(run.out, "out").policy, preset_policy("trl-trainer"));
  EXPECT_THAT(run.err, HasSubstr("settings of TRL"));
}

TEST_F(ImportCommandTest, PredictsTheFiguresOnATrace) {
  const std::string policy = folder_ / "policy.json";
  const std::string code = "OffloadActivations(min_offload_size=1, max_fwd_stash_size=1)\n";
  const CliRun run = import_text("trl", code, {"--trace", trace(), "-o", policy, "--format", "json"});
  // The stash holds two tensors while the next one is saved: 1000 + 8192 + 4096.
  EXPECT_EQ(nlohmann::json::parse(run.out)["predicted"]["device_peak_bytes"], 1000 + 8192 + 4096);
  EXPECT_EQ(read_policy_file(policy).predicted->device_peak_bytes, 1000 + 8192 + 4096);
}

TEST_F(ImportCommandTest, SettingsNeedTheNameOfTheirEngine) {
  write_file(config_, "activation_offloading: true\n");
  const CliRun run = run_words({"import", config_});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("Name the engine with --from"));
  EXPECT_THAT(run.out, testing::IsEmpty());
}

/// Returns the pickle of a snapshot: a block of 1000 bytes that is older than the entries, one of 2000 that
/// they free, and one of `allocated_bytes` that they allocate and free.
std::string snapshot_pickle(std::int64_t allocated_bytes = 4000) {
  PickleWriter pickle;
  const auto entry = [&](const char* action, std::int64_t address, std::int64_t bytes) {
    pickle.begin_dict();
    for (const auto& [key, value] : {std::pair("addr", address), std::pair("size", bytes)}) {
      pickle.text(key);
      pickle.integer(value);
    }
    pickle.text("action");
    pickle.text(action);
    pickle.text("frames");
    pickle.begin_list();
    for (const char* file : {"/usr/lib/python3/torch/nn/modules/linear.py", "/home/user/project/model.py"}) {
      pickle.begin_dict();
      pickle.text("filename");
      pickle.text(file);
      pickle.text("line");
      pickle.integer(12);
      pickle.text("name");
      pickle.text("forward");
      pickle.end_dict();
    }
    pickle.end_list();
    pickle.end_dict();
  };
  pickle.begin_dict();
  pickle.text("device_traces");
  pickle.begin_list();
  pickle.begin_list();
  entry("alloc", 8192, allocated_bytes);
  entry("free_completed", 4096, 2000);
  entry("free_completed", 8192, allocated_bytes);
  pickle.end_list();
  pickle.end_list();
  pickle.text("segments");
  pickle.begin_list();
  pickle.begin_dict();
  for (const auto& [key, value] :
       {std::pair("device", 0), std::pair("address", 0), std::pair("total_size", 2 << 20)}) {
    pickle.text(key);
    pickle.integer(value);
  }
  pickle.text("blocks");
  pickle.begin_list();
  pickle.begin_dict();
  pickle.text("state");
  pickle.text("active_allocated");
  pickle.text("size");
  pickle.integer(1024);
  pickle.text("requested_size");
  pickle.integer(1000);
  pickle.end_dict();
  pickle.end_list();
  pickle.end_dict();
  pickle.end_list();
  pickle.end_dict();
  return pickle.take();
}

TEST_F(ImportCommandTest, MakesATraceOfAMemorySnapshot) {
  const std::string path = folder_ / "t.json";
  const CliRun run = import_text("memory-snapshot", snapshot_pickle(), {"-o", path});
  ASSERT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("Next: offprof report"));
  const Trace imported = read_trace(path);
  EXPECT_EQ(imported.metrics.device_resident_bytes, 3000);
  EXPECT_EQ(imported.metrics.device_peak_bytes, 7000);
  EXPECT_EQ(imported.metrics.device_reserved_peak_bytes, 2 << 20);
  EXPECT_EQ(imported.program.names.back(), "forward (project/model.py:12)");
  EXPECT_THAT(imported.notes.back(), HasSubstr("1 blocks are older"));
}

TEST_F(ImportCommandTest, AGateComparesTheSnapshotsOfTwoRuns) {
  const std::string before = folder_ / "before.json", after = folder_ / "after.json",
                    baseline = folder_ / "baseline.json";
  import_text("memory-snapshot", snapshot_pickle(), {"-o", before});
  import_text("memory-snapshot", snapshot_pickle(8000), {"-o", after});
  EXPECT_EQ(run_words({"gate", before, "--update", "--baseline", baseline}).status, 0);
  EXPECT_EQ(run_words({"gate", before, "--baseline", baseline}).status, 0);
  const CliRun run = run_words({"gate", after, "--baseline", baseline, "--explain"});
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.out, AllOf(HasSubstr("device_peak_bytes"), HasSubstr("project/model.py:12"),
                             testing::Not(HasSubstr("not the same"))));
}

TEST_F(ImportCommandTest, RefusesWhatIsNoMemorySnapshot) {
  const std::string whole = snapshot_pickle();
  for (const std::string& text : {std::string("no pickle"), whole.substr(0, whole.size() / 2),
                                  std::string("cos\nsystem\n."), std::string("\x80\x02}.")}) {
    const CliRun run = import_text("memory-snapshot", text, {"-o", folder_ / "t.json"});
    EXPECT_EQ(run.status, 2);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "t.json"));
  }
}

TEST_F(ImportCommandTest, SaysWhoseFiguresTheyAre) {
  EXPECT_THAT(unwrapped(import_text("trl", "activation_offloading: true\n", {"--trace", trace()}).err),
              HasSubstr("The figures are those of TRL, whose rules the policy has."));
  EXPECT_THAT(unwrapped(import_text("megatron", "--cpu-offloading-num-layers 1\n", {"--trace", trace()}).err),
              HasSubstr("those of offprof's engine under this policy: offprof does not model Megatron-LM's"));
}

TEST_F(ImportCommandTest, WarnsIfNoTensorOfTheTraceMatches) {
  EXPECT_THAT(import_text("megatron", "--cpu-offloading-num-layers 1\n", {"--trace", trace()}).err,
              HasSubstr("warning: "));
}

TEST_F(ImportCommandTest, KeepsTheOffloadOfParameters) {
  const CliRun run =
      import_text("deepspeed", R"({"zero_optimization": {"offload_param": {"device": "cpu"}}})");
  EXPECT_EQ(parse_policy_file(run.out, "out").parameters, (ParameterSettings{"host", std::nullopt}));
}

TEST_F(ImportCommandTest, WritesNothingForDamagedSettings) {
  const std::string policy = folder_ / "policy.json";
  const CliRun run = import_text("deepspeed", "{", {"-o", policy});
  EXPECT_EQ(run.status, 2);
  EXPECT_THROW(read_file(policy), std::exception);
}

}  // namespace
}  // namespace offprof
