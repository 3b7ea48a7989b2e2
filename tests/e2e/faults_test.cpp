// Faults of the machine while the program works: signals and full disks. The program ends with its exit
// status, keeps old files, and leaves nothing else.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "e2e/offprof_process.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kOld = "what was there";

class Faults : public testing::Test {
 protected:
  /// Returns the only file in the test's folder, which exists before the program starts.
  std::string old_file() const {
    std::ofstream(path_) << kOld;
    return path_;
  }
  static std::string text_of(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void expect_old_file() const {
    EXPECT_EQ(text_of(path_), kOld);
    EXPECT_THAT(folder_.files(), ElementsAre("old"));
  }

  /// A model, a recorded trace, and its baseline, created once.
  struct Inputs {
    TestFolder folder;
    std::string model = folder / "mlp.pt", trace = folder / "trace.json", baseline = folder / "baseline.json";
    Inputs() {
      for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
               {"zoo", "make", "mlp", "-o", model, "--batch", "4", "--width", "32"},
               {"run", model, "--steps", "1", "-o", trace},
               {"gate", "--update", "--trace", trace, "--baseline", baseline}}) {
        const Ended ended = run_program(arguments);
        if (ended.status != 0) throw std::runtime_error(ended.err);
      }
    }
  };
  static const Inputs& inputs() {
    static const Inputs made;
    return made;
  }
  /// Returns the command line of a run that trains without end and would then write the old file.
  std::vector<std::string> long_run() const {
    return {"run", inputs().model, "--steps", "1000000", "-v", "-o", old_file()};
  }

 private:
  TestFolder folder_;
  std::string path_ = folder_ / "old";
};

// --- Signals ---

class Signals : public Faults, public testing::WithParamInterface<int> {};

TEST_P(Signals, EndARunWithTheirStatusAndKeepTheOldFile) {
  OffprofProcess program(long_run());
  program.wait_for_error_text("training step 2 of");
  program.send(GetParam());
  EXPECT_EQ(program.finish().status, 128 + GetParam());
  expect_old_file();
}

INSTANTIATE_TEST_SUITE_P(, Signals, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGPIPE));

TEST_F(Faults, ARunEndsAtABrokenPipeAndKeepsTheOldFile) {
  OffprofProcess program(long_run());
  program.wait_for_error_text("training step 2 of");
  program.stop_reading();
  EXPECT_EQ(program.finish().status, 128 + SIGPIPE);
  expect_old_file();
}

TEST_F(Faults, AReportEndsTheProgramAtABrokenPipe) {
  OffprofProcess program({"tune", "--trace", inputs().trace});
  program.stop_reading();
  EXPECT_EQ(program.finish().status, 128 + SIGPIPE);
}

// --- Full disks ---

TEST_F(Faults, ReportsToAFullDeviceFail) {
  const std::string& trace = inputs().trace;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"view", trace},
                                             {"diff", trace, trace},
                                             {"simulate", "--trace", trace, "-o", "-"},
                                             {"tune", "--trace", trace, "--format", "json"},
                                             {"gate", "--trace", trace, "--baseline", inputs().baseline},
                                             {"run", inputs().model, "--steps", "1", "-o", "-"},
                                             {"zoo", "list"}}) {
    SCOPED_TRACE(arguments.front());
    const Ended ended = OffprofProcess(arguments, std::nullopt, {}, "/dev/full").finish();
    EXPECT_EQ(ended.status, 2);
    EXPECT_THAT(ended.err,
                AllOf(HasSubstr("error: cannot write"), HasSubstr("standard output"), HasSubstr("hint: ")));
  }
}

TEST_F(Faults, AFullDiskIsAnErrorAndKeepsTheOldFile) {
  const std::string &trace = inputs().trace, &model = inputs().model, file = old_file();
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", model, "--steps", "1", "-o", file},
           {"run", model, "--steps", "1", "--commands", file},
           {"simulate", "--trace", trace, "-o", file},
           {"simulate", "--trace", trace, "--policy", "offload", "--commands", file},
           {"tune", "--trace", trace, "-o", file},
           {"gate", "--trace", trace, "--baseline", inputs().baseline, "-o", file},
           {"validate", model, "--trace", trace, "--policies", "3", "--rounds", "1", "-o", file},
           {"diff", trace, trace, "-o", file},
           {"zoo", "make", "mlp", "-o", file}}) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    constexpr rlim_t kRoom = 16;
    const Ended ended = run_program(arguments, kRoom);
    EXPECT_EQ(ended.status, 2) << ended.out;
    EXPECT_THAT(unwrapped(ended.err), AllOf(HasSubstr("error: cannot write '" + file + "': File too large"),
                                            HasSubstr("the old file is unchanged"), HasSubstr("hint: ")));
    expect_old_file();
  }
}

/// Files that do not exist yet, and files that are replaced because of their content.
TEST_F(Faults, AFullDiskLeavesNoPartialFile) {
  const TestFolder folder;
  const std::string zipped = folder / "trace.json.gz", baseline = folder / "baseline.json";
  std::filesystem::copy_file(inputs().baseline, baseline);
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", inputs().model, "--steps", "1", "-o", zipped},
           {"simulate", "--trace", inputs().trace, "-o", zipped},
           {"gate", "--update", "--trace", inputs().trace, "--baseline", baseline}}) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    constexpr rlim_t kRoom = 16;
    EXPECT_EQ(run_program(arguments, kRoom).status, 2);
    EXPECT_THAT(folder.files(), ElementsAre("baseline.json"));
    EXPECT_EQ(text_of(baseline), text_of(inputs().baseline));
  }
}

TEST_F(Faults, AFullDeviceGivenByNameIsAnError) {
  const Ended ended = run_program({"tune", "--trace", inputs().trace, "-o", "/dev/full"});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err), AllOf(HasSubstr("cannot write '/dev/full': No space left on device"),
                                          HasSubstr("hint: Free space on the disk")));
}

}  // namespace
}  // namespace offprof
