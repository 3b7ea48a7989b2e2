// Policies that place tensors on a disk, tested with command lines: measured, simulated, tuned, and rejected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "engine/storage/block_codec.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kToDisk = R"([{"min_bytes": 1024, "placement": "disk"}])";
constexpr const char* kEncodedToDisk =
    R"([{"dtype": "bool", "placement": "bits+disk"}, {"rank": 3, "placement": "host"},
        {"min_bytes": 1024, "placement": "disk"}])";
constexpr const char* kCompressed =
    R"([{"dtype": "bool", "placement": "bits+compress"}, {"rank": 3, "placement": "host"},
        {"min_bytes": 1024, "placement": "compress"}])";

class DiskRun : public testing::Test {
 protected:
  std::string policy(const std::string& rules, const std::string& more = "") const {
    const std::string path = inputs_ / "policy.json";
    std::ofstream(path) << R"({"schema": "offprof.policy/1", "policy": {"threshold_bytes": 65536, )"
                        << R"("stash_count": 2, "prefetch_bytes": 65536, )" << more << R"("rules": )" << rules
                        << "}}";
    return path;
  }

  /// Creates a small transformer from the zoo, with dropout.
  static std::string transformer() {
    return zoo_model("transformer", {"--batch", "2", "--layers", "2", "--seq", "32", "--width", "32"});
  }

  /// Returns the flags that configure the disk of the device.
  std::vector<std::string> disk_of(const std::string& device) const {
    if (device == "host") return {"--disk", disk_.path()};
    return {"--disk-bandwidth", "1GB/s,2GB/s"};
  }

  json run(const std::string& device, const std::string& policy,
           const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"run",           transformer(), "--device", device,
                                          "--policy",      policy,        "--steps",  "2",
                                          "--calibration", "brief",       "-o",       folder_ / "trace.json"};
    for (const auto& some : {disk_of(device), more})
      arguments.insert(arguments.end(), some.begin(), some.end());
    return report_of(arguments);
  }
  json simulate(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"simulate", "--trace", folder_ / "trace.json", "--policy",
                                          inputs_ / "policy.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return report_of(arguments);
  }

  TestFolder folder_, inputs_, disk_;
};

/// Returns the bytes in the ledger with this placement and reason.
std::int64_t placed(const json& report, const std::string& placement, const std::string& reason) {
  std::int64_t bytes = 0;
  for (const json& row : report["ledger"])
    if (row["placement"] == placement && row["reason"] == reason) bytes += row["bytes"].get<std::int64_t>();
  return bytes;
}

int transfers_in(const json& trace, const std::string& name) {
  int transfers = 0;
  for (const json& event : trace["traceEvents"])
    transfers += event.value("cat", "") == "disk" && event["name"] == name ? 1 : 0;
  return transfers;
}

void expect_same_bytes(const json& measured, const json& simulated) {
  EXPECT_THAT(measured["inexact"], IsEmpty());
  for (const char* key :
       {"device_peak_bytes", "device_allocated_peak_bytes", "device_reserved_peak_bytes", "host_peak_bytes",
        "disk_peak_bytes", "disk_write_bytes", "disk_read_bytes", "d2h_bytes", "h2d_bytes"})
    EXPECT_EQ(measured["measured"].value(key, json()), simulated["predicted"].value(key, json())) << key;
  EXPECT_EQ(measured["ledger"], simulated["ledger"]);
}

TEST_F(DiskRun, KeepsGradientsBitwiseAndLeavesNoFiles) {
  const std::string small_buffer = R"("disk_buffer_bytes": 65536, )";
  const json measured = run("host", policy(kToDisk, small_buffer), {"--disk-checksums"});
  EXPECT_EQ(measured["gradients"], "bitwise");
  EXPECT_THAT(disk_.files(), IsEmpty());
  const json trace = json::parse(std::ifstream(folder_ / "trace.json"));
  EXPECT_GT(trace["environment"]["link"]["disk"]["write"]["bytes_per_second"], 0);
  EXPECT_GT(transfers_in(trace, "disk write"), 0);
  EXPECT_GT(transfers_in(trace, "disk read"), 0);
}

/// Behaves like a disk, except for the number of stored bytes, which is only measured.
TEST_F(DiskRun, CompressedMemoryReplacesTheDisk) {
  const std::string rules = policy(kCompressed, R"("disk_buffer_bytes": 65536, )");
  if (!has_block_codec()) GTEST_SKIP() << "this build has no codec";
  const json measured = report_of({"run", transformer(), "--device", "host", "--policy", rules, "--steps",
                                   "2", "-o", folder_ / "trace.json"});
  EXPECT_EQ(measured["gradients"], "bitwise");
  EXPECT_GT(measured["measured"]["disk_read_bytes"], 0);
  EXPECT_THAT(
      measured["notes"].get<std::vector<std::string>>(),
      AllOf(Contains(HasSubstr("host memory, compressed by blosc")),
            Contains(AllOf(HasSubstr("compressed: of"), HasSubstr("in addition to host_peak_bytes")))));
  expect_same_bytes(measured, simulate());
}

class DiskRunOn : public DiskRun, public testing::WithParamInterface<const char*> {};

TEST_P(DiskRunOn, SimulatesTheBytesOfTheRun) {
  const json measured = run(GetParam(), policy(kEncodedToDisk, R"("disk_buffer_bytes": 65536, )"));
  EXPECT_GT(measured["measured"]["disk_read_bytes"], 0);
  expect_same_bytes(measured, simulate());
}

TEST_P(DiskRunOn, OverflowGoesToHostMemoryAndThenStaysOnTheDevice) {
  const std::string caps = R"("disk_memory_bytes": 100000, "host_memory_bytes": 100000, )";
  const json measured = run(GetParam(), policy(kToDisk, caps));
  expect_same_bytes(measured, simulate());
  EXPECT_LE(measured["measured"]["disk_peak_bytes"], 100000);
  for (const char* place : {"host", "device"}) EXPECT_GT(placed(measured, place, "disk_full"), 0) << place;
}

INSTANTIATE_TEST_SUITE_P(, DiskRunOn, testing::Values("host", "virtual:h200"),
                         [](const auto& test) { return std::string(test.param).substr(0, 4); });

TEST_F(DiskRun, VirtualGpuTimesEqualTheReplaysToTheNanosecond) {
  const json measured = run("virtual:h200", policy(kToDisk, R"("disk_buffer_bytes": 65536, )"));
  const json simulated = simulate();
  for (const char* key : {"step_time_ns", "compute_ns", "exposed_ns", "launch_gap_ns"})
    EXPECT_EQ(measured["measured"][key], simulated["predicted"][key]) << key;
}

TEST_F(DiskRun, ASlowerDiskMakesASlowerStep) {
  run("virtual:h200", policy(kToDisk, R"("disk_buffer_bytes": 65536, )"));
  const auto step_time = [&](const char* speed) {
    return simulate({"--disk-bandwidth", speed})["predicted"]["step_time_ns"].get<std::int64_t>();
  };
  EXPECT_LT(step_time("2GB/s"), step_time("200MB/s"));
  EXPECT_LT(step_time("200MB/s"), step_time("200MB/s,20MB/s"));
}

/// The file size limit imitates a full disk.
TEST_F(DiskRun, ReportsAFullDiskAndContinues) {
  const Ended ended = run_program({"run", transformer(), "--device", "host", "--policy", policy(kToDisk),
                                   "--steps", "1", "--disk", disk_.path(), "--format", "json"},
                                  rlim_t{64 * 1024});
  ASSERT_THAT(ended.status, 0) << ended.err;
  const json measured = json::parse(ended.out);
  EXPECT_EQ(measured["gradients"], "bitwise");
  EXPECT_THAT(measured["notes"].get<std::vector<std::string>>(), Contains(HasSubstr("the disk was full")));
  EXPECT_GT(placed(measured, "host", "disk_full"), 0);
}

/// Checks both the policy's file and the parameters' file.
TEST_F(DiskRun, LeavesNoFilesWhenKilledAtAnyMoment) {
  const std::string trace = folder_ / "trace.json";
  const auto words = [&](const std::string& steps) {
    return std::vector<std::string>{"run",
                                    transformer(),
                                    "--device",
                                    "host",
                                    "--policy",
                                    policy(kToDisk),
                                    "--disk",
                                    disk_.path(),
                                    "--offload-params",
                                    "disk",
                                    "--offload-params-dir",
                                    disk_.path(),
                                    "--steps",
                                    steps,
                                    "-v",
                                    "-o",
                                    trace};
  };
  constexpr int kDeaths = 8;
  constexpr int kLongest_us = 200'000;  // several steps
  std::minstd_rand random(1);
  for (int death = 0; death < kDeaths; ++death) {
    OffprofProcess program(words("100000"));
    program.wait_for_error_text(death % 2 == 0 ? "training step" : "recording");
    std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongest_us));
    constexpr int kSignals[] = {SIGKILL, SIGTERM, SIGKILL, SIGINT};
    const int signal = kSignals[death % std::size(kSignals)];
    program.send(signal);
    EXPECT_EQ(program.finish().status, 128 + signal);
    EXPECT_THAT(disk_.files(), IsEmpty());
    EXPECT_THAT(folder_.files(), IsEmpty());
  }
  const Ended ended = run_program(words("1"));
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(disk_.files(), IsEmpty());
  EXPECT_TRUE(json::parse(std::ifstream(trace)).contains("program"));
}

TEST_F(DiskRun, UsesAFolderInMemoryWithANote) {
  const std::string memory = "/dev/shm";
  struct statfs facts {};
  if (::statfs(memory.c_str(), &facts) != 0 || facts.f_type != TMPFS_MAGIC) GTEST_SKIP() << "no tmpfs there";
  const std::vector<std::string> model = {"run", transformer(), "--device", "host", "--steps", "1"};
  const auto notes = [&](const std::vector<std::string>& more) {
    return report_of(joined(model, more))["notes"].get<std::vector<std::string>>();
  };
  EXPECT_THAT(notes({"--policy", policy(kToDisk), "--disk", memory}),
              Contains(HasSubstr("is on tmpfs, which is memory")));
  EXPECT_THAT(notes({"--offload-params", "disk", "--offload-params-dir", memory}),
              Contains(HasSubstr("is on tmpfs, which is memory")));
}

TEST_F(DiskRun, RejectsADiskPlacementWithoutADisk) {
  const Ended host = run_program({"run", transformer(), "--device", "host", "--policy", policy(kToDisk)});
  EXPECT_EQ(host.status, 2);
  EXPECT_THAT(unwrapped(host.err), AllOf(HasSubstr("no disk was given"), HasSubstr("--disk DIR")));
  const Ended gpu =
      run_program({"run", transformer(), "--device", "virtual:h200", "--policy", policy(kToDisk)});
  EXPECT_EQ(gpu.status, 2);
  EXPECT_THAT(unwrapped(gpu.err), HasSubstr("--disk-bandwidth"));
}

TEST_F(DiskRun, RejectsAFolderThatIsNotWritable) {
  for (const std::string& folder : {disk_ / "not_there", std::string("/proc")}) {
    const Ended ended = run_program({"run", transformer(), "--device", "host", "--policy", policy(kToDisk),
                                     "--disk", folder, "-o", folder_ / "trace.json"});
    EXPECT_EQ(ended.status, 2) << ended.err;
    EXPECT_THAT(unwrapped(ended.err), HasSubstr(folder));
    EXPECT_THAT(folder_.files(), IsEmpty());
  }
}

TEST_F(DiskRun, RejectsContradictoryFlags) {
  const char* rules = kToDisk;
  const auto expect_refused = [&](std::vector<std::string> more, const std::string& what) {
    more.insert(more.begin(), {"run", transformer(), "--policy", policy(rules)});
    const Ended ended = run_program(more);
    EXPECT_EQ(ended.status, 2) << ended.err;
    EXPECT_THAT(unwrapped(ended.err), HasSubstr(what));
  };
  expect_refused({"--device", "host", "--disk-checksums"}, "has no effect without --disk");
  expect_refused({"--device", "host", "--disk-bandwidth", "1GB/s"}, "on this device the disk is real");
  expect_refused({"--device", "virtual:h200", "--disk", disk_.path()}, "the disk is modelled too");
  expect_refused({"--device", "virtual:h200", "--disk-bandwidth", "fast"}, "fast");
  expect_refused({"--device", "host", "--compress"}, "Write `compress` instead of `disk` in its rules");
  rules = kCompressed;
  expect_refused({"--device", "virtual:h200"}, "no values to compress");
  expect_refused({"--device", "host", "--disk", disk_.path()}, "omit --disk");
  expect_refused({"--device", "host", "--disk-checksums"}, "compressed memory has no file");
  rules = R"([{"op": "aten::gelu", "placement": "compress"}, {"placement": "disk"}])";
  expect_refused({"--device", "host"},
                 "policy.rules[1]: places tensors on 'disk', but an earlier rule on 'compress'");
  EXPECT_THAT(folder_.files(), IsEmpty());
}

TEST_F(DiskRun, ASimulationNeedsTheSpeedOfTheDisk) {
  const std::string model = transformer();
  report_of(
      {"run", model, "--device", "host", "--policy", "keep", "--steps", "1", "-o", folder_ / "trace.json"});
  policy(kToDisk);
  const Ended ended =
      run_program({"simulate", "--trace", folder_ / "trace.json", "--policy", inputs_ / "policy.json"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("--disk-bandwidth"));
  EXPECT_GT(simulate({"--disk-bandwidth", "1GB/s"})["predicted"]["disk_peak_bytes"], 0);
}

TEST_F(DiskRun, DoesNotUseTheSpeedOfACodecForADisk) {
  const std::string trace = folder_ / "trace.json";
  run("virtual:h200", policy(kCompressed));
  EXPECT_TRUE(json::parse(std::ifstream(trace))["environment"]["link"]["disk"]["compressed"]);
  policy(kToDisk);
  const Ended ended = run_program({"simulate", "--trace", trace, "--policy", inputs_ / "policy.json"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), HasSubstr("the trace does not contain the speed of a disk"));
}

/// Also chooses compressed memory, if its speed was measured.
TEST_F(DiskRun, TuneUsesTheDiskIfHostMemoryIsShort) {
  const std::string model = inputs_ / "model.pt", trace = folder_ / "trace.json";
  ASSERT_EQ(run_program({"zoo", "make", "transformer", "-o", model, "--batch", "8", "--layers", "4", "--seq",
                         "128", "--width", "128"})
                .status,
            0);
  for (const std::string place : {"disk", "compress"}) {
    std::vector<std::string> recorded = {"run",      model,  "--device",         "virtual:h200",
                                         "--policy", "keep", "--disk-bandwidth", "1GB/s",
                                         "-o",       trace};
    if (place == "compress") recorded.emplace_back("--compress");
    report_of(recorded);
    const json tuned = report_of({"tune", "--trace", trace, "--host-memory", "0", "--max-slowdown", "10000%",
                                  "-o", inputs_ / "tuned.json"});
    EXPECT_GT(tuned["chosen"]["predicted"].value("disk_peak_bytes", 0), 0) << tuned["chosen"];
    EXPECT_THAT(json::parse(std::ifstream(inputs_ / "tuned.json")).dump(), HasSubstr('"' + place + '"'));
    const json measured = report_of({"run", model, "--device", "virtual:h200", "--policy",
                                     inputs_ / "tuned.json", "--disk-bandwidth", "1GB/s"});
    EXPECT_THAT(measured["inexact"], IsEmpty());
    EXPECT_EQ(measured["measured"]["host_peak_bytes"], tuned["chosen"]["predicted"]["host_peak_bytes"]);
  }
}

}  // namespace
}  // namespace offprof
