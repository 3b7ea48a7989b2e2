#include "cli/reports/next_command.h"

#include <gtest/gtest.h>

#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

using Words = std::vector<std::string>;

TEST(NextCommand, QuotesShellCharacters) {
  EXPECT_EQ(shell_word("out/t-1.json.gz"), "out/t-1.json.gz");
  EXPECT_EQ(shell_word("int64[4,96]<512"), "'int64[4,96]<512'");
  EXPECT_EQ(shell_word("layers.*,head"), "'layers.*,head'");
  EXPECT_EQ(shell_word("it's here"), "'it'\\''s here'");
  EXPECT_EQ(shell_word(""), "''");
  EXPECT_EQ(command_line({"tune", "my trace.json"}), "offprof tune 'my trace.json'");
  EXPECT_EQ(next_line({"tune", "my trace.json"}), "Next: offprof tune 'my trace.json'\n");
}

TEST(NextCommand, RedirectsTheOutputInEachNotation) {
  const Words expected = {"run", "m.pt", "--steps", "2", "-o", "t.json"};
  EXPECT_EQ(with_output({"offprof", "run", "m.pt", "--steps", "2"}, "t.json"), expected);
  EXPECT_EQ(with_output({"offprof", "run", "m.pt", "-o", "-", "--steps", "2"}, "t.json"), expected);
  EXPECT_EQ(with_output({"offprof", "run", "m.pt", "-o-", "--steps", "2"}, "t.json"), expected);
  EXPECT_EQ(with_output({"offprof", "run", "m.pt", "--output=-", "--steps", "2"}, "t.json"), expected);
  EXPECT_EQ(with_output({"offprof", "run", "m.pt", "--output", "-", "--steps", "2"}, "t.json"), expected);
  EXPECT_EQ(with_output({"offprof", "run", "-qo", "-", "m.pt"}, "t.json"),
            (Words{"run", "-q", "m.pt", "-o", "t.json"}));
}

TEST(NextCommand, RepeatsTheTracesRunUnderAnotherPolicy) {
  Trace trace = sample_trace();
  trace.argv = {"build/offprof",
                "run",
                "m.pt",
                "--device",
                "virtual:h200",
                "--threshold=1KiB",
                "--stash",
                "2",
                "--transforms",
                "all",
                "--input",
                "int64[4,96]<512",
                "-o",
                "t.json"};
  EXPECT_EQ(run_with_policy(trace, "p.json"), (Words{"run", "m.pt", "--device", "virtual:h200", "--input",
                                                     "int64[4,96]<512", "--policy", "p.json"}));
}

TEST(NextCommand, LeavesOutCheckpointing) {
  EXPECT_EQ(
      without_checkpointing({"run", "t.py", "--checkpoint", "a", "b.*", "-v", "--", "--checkpoint", "c"}),
      (Words{"run", "t.py", "-v", "--", "--checkpoint", "c"}));
  EXPECT_EQ(without_checkpointing({"run", "--checkpoint=a,b", "m.pt"}), (Words{"run", "m.pt"}));
}

TEST(NextCommand, SetsTheAllocatorsSettingsOfTheTrace) {
  Trace trace = sample_trace();
  trace.program.allocator.emplace();
  EXPECT_EQ(variables_of_run(trace), Variables()) << "PyTorch's own";
  trace.program.allocator->settings = "expandable_segments:True";
  EXPECT_EQ(next_line({"run", "m.pt"}, variables_of_run(trace)),
            "Next: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True offprof run m.pt\n");
  trace.program.allocator.reset();
  EXPECT_EQ(variables_of_run(trace), Variables()) << "the device has no caching allocator";
}

TEST(NextCommand, UsesTheSettingsOfATraceFromAnotherCommand) {
  Trace trace = sample_trace();
  trace.simulated = true;
  trace.argv = {"offprof", "simulate", "t.json"};
  trace.settings.checkpointed = {"layers.*"};
  const Words words = run_with_policy(trace, "p.json");
  ASSERT_GE(words.size(), 4U);
  EXPECT_EQ(Words(words.begin(), words.begin() + 4),
            (Words{"run", trace.model.name, "--device", trace.environment.device}));
  EXPECT_EQ(Words(words.end() - 4, words.end()), (Words{"--checkpoint", "layers.*", "--policy", "p.json"}));
}

TEST(NextCommand, LeavesOutHowTheRecordingWasReported) {
  Trace trace = sample_trace();
  trace.argv = {"offprof", "run", "-q", "m.py", "--format", "json", "-v", "--color=never", "--", "-q"};
  EXPECT_EQ(run_with_policy(trace, "p.json"), (Words{"run", "m.py", "--policy", "p.json", "--", "-q"}));
}

TEST(NextCommand, LeavesOutMemoryBeyondThatOfTheDevice) {
  Trace trace = sample_trace();
  trace.argv = {"offprof", "run", "m.pt", "--device-memory", "2TiB"};
  trace.settings.device_memory_bytes = 2048 * kGiB;
  trace.environment.device_memory_bytes = 80 * kGiB;
  EXPECT_EQ(run_with_policy(trace, "p.json"), (Words{"run", "m.pt", "--policy", "p.json"}));
  trace.argv.back() = "60GiB";
  trace.settings.device_memory_bytes = 60 * kGiB;
  EXPECT_EQ(run_with_policy(trace, "p.json"),
            (Words{"run", "m.pt", "--device-memory", "60GiB", "--policy", "p.json"}));
}

TEST(NextCommand, FormatsSizesAndLinksExactly) {
  Link link{{1.5e9, 2000, 0}, {1.5e9, 2000, 0}};
  EXPECT_EQ(exact_bytes(1023), "1023B");
  EXPECT_EQ(exact_link(link), "1500000000B/s,2000ns");
  link.is_shared = true;
  EXPECT_EQ(exact_link(link), "1500000000B/s,2000ns,shared");
  EXPECT_EQ(exact_disk({{2e9, 0, 0}, {3e9, 0, 0}}), "2000000000B/s,3000000000B/s");
}

}  // namespace
}  // namespace offprof
