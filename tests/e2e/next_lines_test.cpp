// Suggested next commands, after a report or in the hint of an error: each is pasted into a shell as it was
// printed, and must run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

/// Labels at the beginning of a line that are followed by a command.
constexpr const char* kLabels[] = {"Next: ", "See what changed:   ", "If intended:        "};

/// Returns the command at the end of an error's hint, whose lines are wrapped; empty if there is none.
std::string command_in_hint(const std::string& text) {
  const std::size_t begin = text.find("\nhint: ");
  if (begin == std::string::npos) return "";
  const std::string hint = unwrapped(text.substr(begin));
  const std::size_t command = hint.find(": offprof ");
  return command == std::string::npos ? "" : hint.substr(command + 2);
}

std::vector<std::string> commands_in(const std::string& text) {
  std::vector<std::string> commands;
  if (const std::string command = command_in_hint(text); !command.empty()) commands.push_back(command);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    for (const std::string label : kLabels)
      if (line.starts_with(label)) commands.push_back(line.substr(label.size()));
  return commands;
}

class NextLines : public testing::Test {
 protected:
  /// Runs the line in a shell, in the test's folder.
  Ended paste(const std::string& line) const {
    const std::string path = in_quotes(program_path().parent_path().string());
    const std::string script = "PATH=" + path + ":$PATH; cd " + in_quotes(folder_.path()) + " && " + line;
    return run_program_at("/bin/sh", {"-c", script});
  }

  /// Runs the line, then the commands that its output suggests, and so on until there is no new one. Returns
  /// the commands in order.
  std::vector<std::string> follow(const std::string& line, int status = 0) {
    const Ended ended = paste(line);
    EXPECT_EQ(ended.status, status) << line << "\n" << ended.out << ended.err;
    std::vector<std::string> commands;
    for (const std::string& next : commands_in(ended.out + ended.err)) {
      EXPECT_TRUE(next.starts_with("offprof ")) << "of " << line << ": " << next;
      if (!followed_.insert(next).second) continue;
      commands.push_back(next);
      for (std::string& later : follow(next)) commands.push_back(std::move(later));
    }
    return commands;
  }

  /// Returns the commands below `Next: ` in the report of advise, each of which begins with two blanks, or
  /// with `Then: `.
  static std::vector<std::string> commands_of_advise(const std::string& text) {
    std::vector<std::string> commands = commands_in(text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      for (const std::string label : {"Then: ", "  "})
        if (line.starts_with(label) && line.find("offprof ") != std::string::npos)
          commands.push_back(line.substr(label.size()));
    return commands;
  }

  static std::string run_of_qwen() {
    return "offprof run " + in_quotes(model_path("qwen2.pt")) + " --input " +
           in_quotes("@" + model_path("qwen2.inputs")) + " --steps 1";
  }

  TestFolder folder_;
  std::set<std::string> followed_;
};

TEST_F(NextLines, LeadFromARunToAGateOnTheHost) {
  EXPECT_THAT(follow(run_of_qwen() + " --device host"),
              AllOf(Contains("offprof tune trace.json -o policy.json"),
                    Contains(AllOf(HasSubstr("--device host"), HasSubstr("--policy policy.json"))),
                    Contains("offprof gate trace.json --update --baseline baseline.json")));
}

TEST_F(NextLines, LeadFromARunToAGateOnTheSameVirtualGpu) {
  EXPECT_THAT(follow(run_of_qwen() + " --device virtual:l4 -o - >/dev/null"),
              AllOf(Contains(AllOf(HasSubstr("--device virtual:l4"), HasSubstr("-o trace.json"))),
                    Contains(AllOf(HasSubstr("--device virtual:l4"), HasSubstr("--policy policy.json"))),
                    Contains("offprof gate trace.json --update --baseline baseline.json")));
}

TEST_F(NextLines, QuoteTheNameOfAZooModel) {
  EXPECT_THAT(follow("offprof zoo make mlp --meta --batch 64 -o 'my model.pt'"),
              AllOf(Contains("offprof run 'my model.pt' --device virtual -o trace.json"),
                    Contains(AllOf(HasSubstr("'my model.pt'"), HasSubstr("--policy policy.json")))));
}

TEST_F(NextLines, RepeatTheTraceOfTheCommand) {
  ASSERT_EQ(paste(run_of_qwen() + " --device virtual -o 't 1.json'").status, 0);
  EXPECT_THAT(follow("offprof view 't 1.json'"), Contains("offprof tune 't 1.json'"));
  EXPECT_THAT(follow("offprof tune 't 1.json' -o - --max-slowdown 20% >/dev/null"),
              Contains("offprof tune 't 1.json' --max-slowdown 20% -o policy.json"));
  const Bytes mebibytes = keeps_cublas_workspaces() ? 72 : 38;  // below the peak
  const std::string memory = std::to_string(mebibytes * kMiB) + "B";
  EXPECT_THAT(
      follow("offprof simulate 't 1.json' --policy keep --device-memory " + memory + " --link 1GB/s", 1),
      Contains("offprof tune 't 1.json' --device-memory " + memory + " --link 1000000000B/s,0ns"));
}

TEST_F(NextLines, SuggestDiffAndUpdateAfterAFailedGate) {
  ASSERT_EQ(paste(run_of_qwen() + " --device virtual -o before.json --policy offload").status, 0);
  ASSERT_EQ(paste(run_of_qwen() + " --device virtual -o after.json --policy keep").status, 0);
  ASSERT_EQ(paste("offprof gate before.json --update --baseline base.json").status, 0);
  EXPECT_THAT(follow("offprof gate after.json --baseline base.json --allow-different", 1),
              AllOf(Contains("offprof diff base.json after.json"),
                    Contains("offprof gate after.json --update --baseline base.json")));
}

TEST_F(NextLines, OfAnErrorRecordWhatThePolicyNeeds) {
  ASSERT_EQ(paste(run_of_qwen() + " --device virtual --transforms none -o t.json").status, 0);
  ASSERT_EQ(paste(R"(echo '{"schema": "offprof.policy/1", "policy": {"name": "mine", "rules": )"
                  R"([{"placement": "recompute"}]}}' > 'my policy.json')")
                .status,
            0);
  EXPECT_THAT(follow("offprof simulate t.json --policy 'my policy.json'", 2),
              Contains(AllOf(HasSubstr("qwen2.pt --input"),
                             HasSubstr("--device virtual --policy 'my policy.json' -o trace.json"))));
}

TEST_F(NextLines, OfAdviseRunAndExportTheWay) {
  ASSERT_EQ(paste("offprof zoo make transformer --meta --batch 8 --layers 4 --width 128 -o model.pt").status,
            0);
  const std::string budget = keeps_cublas_workspaces() ? "120MiB" : "88MiB";
  const Ended advice = paste("offprof advise model.pt --device virtual:h200 --memory-budget " + budget);
  const std::vector<std::string> commands = commands_of_advise(advice.out);
  EXPECT_THAT(commands,
              AllOf(Contains(HasSubstr("offprof run model.pt")), Contains(HasSubstr("--to pytorch"))))
      << advice.out << advice.err;
  for (const std::string& command : commands) {
    const Ended ended = paste(command);
    EXPECT_EQ(ended.status, 0) << command << "\n" << ended.err;
  }
}

TEST_F(NextLines, PassAnAssumedDiskToTheRun) {
  ASSERT_EQ(paste(run_of_qwen() + " --device virtual -o t.json --policy keep").status, 0);
  follow("offprof tune t.json --disk-bandwidth 2GB/s --host-memory 0 --max-slowdown 10000% -o policy.json");
}

}  // namespace
}  // namespace offprof
