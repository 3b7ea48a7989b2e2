#include "cli/terminal/printable_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHostile = "\033[2J\033]0;gone\007\r\u202e\nerror: forged";

TEST(PrintableStream, DisplaysTerminalControlCodes) {
  std::ostringstream out;
  PrintableStream(out) << "a\033[2Jb\u202ec\rd\n";
  EXPECT_EQ(out.str(), "a\\u001b[2Jb\\u202ec\\u000dd\n");
}

TEST(PrintableStream, JoinsPiecesOfACharacter) {
  std::ostringstream out;
  PrintableStream shown(out);
  for (const char byte : std::string("→\033[1mx\033[0m")) shown << byte;
  shown << std::flush;
  EXPECT_EQ(out.str(), "→\033[1mx\033[0m");
}

TEST(PrintableStream, WritesEachLineAndTheRestAtAFlushOrAtItsEnd) {
  std::ostringstream out;
  {
    PrintableStream shown(out);
    shown << "one\ntw";
    EXPECT_EQ(out.str(), "one\n");
    shown << std::flush;
    EXPECT_EQ(out.str(), "one\ntw");
    shown << "o";
  }
  EXPECT_EQ(out.str(), "one\ntwo");
}

TEST(PrintableStream, FailsIfTheUnderlyingStreamFails) {
  std::ostringstream out;
  PrintableStream shown(out);
  out.setstate(std::ios::badbit);
  shown << "x" << std::flush;
  EXPECT_FALSE(shown);
}

/// A trace file in which every name contains harmful control codes.
class HostileTrace : public testing::Test {
 protected:
  HostileTrace() {
    Trace trace = sample_trace();
    for (std::string& name : trace.program.names) name += kHostile;
    for (std::string* name : {&trace.tool_version, &trace.environment.device, &trace.environment.device_name,
                              &trace.environment.torch_version, &trace.model.name, &trace.model.fingerprint,
                              &trace.settings.inputs[0], &trace.settings.loss, &trace.settings.optimizer,
                              &trace.policy.name, &trace.gradients, &trace.notes.emplace_back()})
      *name += kHostile;
    write_file(path_, format_trace(trace));
  }

  static void expect_harmless(const CliRun& run) {
    for (const std::string& text : {run.out, run.err}) {
      EXPECT_THAT(text, AllOf(Not(HasSubstr("\033[2J")), Not(HasSubstr("\033]")), Not(HasSubstr("\007")),
                              Not(HasSubstr("\r")), Not(HasSubstr("\u202e"))));
      EXPECT_THAT(text, Not(HasSubstr("\nerror: forged")));
    }
  }

  TemporaryFolder folder_{"hostile_trace"};
  std::string path_ = folder_ / "t.json";
};

TEST_F(HostileTrace, IsDisplayedHarmlessly) {
  for (const char* color : {"always", "never"}) {
    const CliRun run = run_words({"view", path_, "--color", color});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr(R"(aten::relu\u001b[2J\u001b]0;gone\u0007\u000d\u202e\u000aerror: )"));
    expect_harmless(run);
  }
}

TEST_F(HostileTrace, IsHarmlessInEveryCommandThatReadsTraces) {
  const std::string simulated = folder_ / "s.json", baseline = folder_ / "b.json";
  const std::vector<std::vector<std::string>> command_lines = {
      {"simulate", "--trace", path_, "--policy", "keep", "-o", simulated},
      {"view", simulated},
      {"gate", "--update", "--trace", path_, "--baseline", baseline},
      {"gate", "--trace", simulated, "--baseline", baseline},
      {"diff", path_, simulated},
      {"diff", baseline, simulated, "--format", "json"},
      {"tune", "--trace", path_, "-o", folder_ / "p.json"}};
  for (const auto& words : command_lines) {
    const CliRun run = run_words(words);
    EXPECT_LE(run.status, 1) << words[0] << ": " << run.err;
    expect_harmless(run);
  }
}

TEST_F(HostileTrace, IsQuotedHarmlesslyInErrors) {
  write_file(path_, std::string(R"({"schema": "x\u001b[2J\u001b]0;gone\u0007\r\u202e\nerror: forged"})"));
  const CliRun run = run_words({"view", path_});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr(R"(x\u001b[2J)"));
  expect_harmless(run);
}

TEST(HostileWords, AreQuotedHarmlesslyInErrors) {
  const CliRun run = run_words({"view", "\033[2J\033]0;gone\007"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr(R"(\u001b[2J)"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace offprof
