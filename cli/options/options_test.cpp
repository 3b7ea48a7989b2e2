#include "cli/options/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "cli/base/command.h"
#include "cli/options/disk_options.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

/// Parses a command line that has only the options added by `add`.
template <class Add>
void parse(std::vector<std::string> words, Add add) {
  CLI::App app;
  add(app);
  std::ranges::reverse(words);
  app.parse(words);
}

template <class Work>
std::string error_of(Work work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return std::string(error.what()) + "\n" + error.hint();
  }
  return "no error";
}

PolicyFile policy_of(const std::vector<std::string>& words, const std::string& preset = "offload") {
  PolicyOptions options;
  parse(words, [&](CLI::App& app) { options.add_to(app, preset); });
  return options.resolve();
}

TEST(Options, ABadByteSizeNamesItsFlagAndTheAcceptedFormat) {
  const std::string error = error_of([] { policy_of({"--threshold", "1.5XB"}); });
  EXPECT_THAT(error, AllOf(HasSubstr("--threshold: "), HasSubstr("1.5XB"), HasSubstr("MiB")));
}

TEST(Options, RejectsNegativeSizes) {
  EXPECT_THAT(error_of([] { policy_of({"--prefetch", "-1"}); }), HasSubstr("--prefetch"));
  EXPECT_THAT(error_of([] { policy_of({"--stash", "-1"}); }), HasSubstr("--stash: '-1'"));
}

TEST(Options, RejectsACapacityOrARateWithoutAUnit) {
  for (const char* flag : {"--host-memory", "--disk-memory", "--disk-buffer"}) {
    EXPECT_THAT(error_of([&] {
                  policy_of({flag, "80"});
                }),
                AllOf(HasSubstr(std::string(flag) + ": '80' means 80 bytes"), HasSubstr("80GiB")));
  }
  EXPECT_THAT(error_of([] { parse_link("12"); }),
              AllOf(HasSubstr("'12' means 12 bytes per second"), HasSubstr("12GB/s")));
  EXPECT_THAT(error_of([] { parse_link("12/s,1us"); }), HasSubstr("12 bytes per second"));
  EXPECT_THAT(error_of([] { parse_disk_speed("2GB/s,3"); }), HasSubstr("3 bytes per second"));
}

TEST(Options, AcceptsSmallCapacitiesAndRatesWithAUnit) {
  EXPECT_EQ(parse_capacity("80B"), 80);
  EXPECT_EQ(parse_capacity("4K"), 4096);
  EXPECT_EQ(parse_capacity("0"), 0) << "none";
  EXPECT_EQ(parse_capacity("1048576"), kMiB);
  EXPECT_DOUBLE_EQ(parse_bandwidth("12B/s"), 12);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1048576"), kMiB);
}

TEST(Options, AcceptsSmallNumbersForTensorSizes) {
  const Policy policy = policy_of({"--threshold", "80", "--stash-bytes", "90", "--prefetch", "100"}).policy;
  EXPECT_EQ(policy.threshold_bytes, 80);
  EXPECT_EQ(policy.stash_bytes, 90);
  EXPECT_EQ(policy.prefetch_bytes, 100);
}

std::vector<std::string> traces_of(const std::vector<std::string>& words) {
  TraceArgument traces;
  parse(words, [&](CLI::App& app) { traces.add_several_to(app, ""); });
  return traces.paths();
}

TEST(Options, AcceptsTracesAsArgumentsOrByName) {
  const std::vector<std::string> both = {"a.json", "b.json"};
  EXPECT_EQ(traces_of({"a.json", "b.json"}), both);
  EXPECT_EQ(traces_of({"--trace", "a.json", "--trace", "b.json"}), both);
  EXPECT_EQ(traces_of({"a.json", "--trace", "a.json"}), std::vector<std::string>{"a.json"});
}

TEST(Options, RejectsMissingAndContradictoryTraces) {
  EXPECT_THAT(error_of([] { traces_of({}); }), HasSubstr("no trace is given"));
  EXPECT_THAT(error_of([] {
                traces_of({"a.json", "--trace", "b.json"});
              }),
              HasSubstr("the argument is a.json, but --trace is b.json"));
}

TEST(Options, RejectsAPercentageWithoutItsSign) {
  EXPECT_DOUBLE_EQ(parse_percentage("5%", "slowdown", 1), 0.05);
  EXPECT_THAT(error_of([] { parse_percentage("5", "slowdown", 1); }),
              HasSubstr("'5' can be read as 5% and as 500%"));
  EXPECT_THAT(error_of([] { parse_percentage("1e300%", "slowdown", 100); }), HasSubstr("more than 10000%"));
  for (const char* text : {"", "%", "-1%", "nan%", "inf%", "x%", "5%%"})
    EXPECT_THAT(error_of([&] { parse_percentage(text, "slowdown", 1); }),
                HasSubstr("is not a valid slowdown"))
        << text;
}

TEST(Options, AcceptsAShareAsPercentageOrNumber) {
  EXPECT_DOUBLE_EQ(parse_share("5%", "share"), 0.05);
  EXPECT_DOUBLE_EQ(parse_share("0.05", "share"), 0.05);
}

TEST(Options, AcceptsOnlyWholeCountsWithinTheirRange) {
  std::int64_t value = 0;
  const auto add = [&](CLI::App& app) { add_count_option(app, "-n,--steps", value, 1, 9, ""); };
  parse({"-n", "7"}, add);
  EXPECT_EQ(value, 7);
  for (const char* text : {"0", "10", "1.5", "x", "", "99999999999999999999"}) {
    EXPECT_THAT(error_of([&] { parse({"--steps", text}, add); }), HasSubstr("--steps: ")) << text;
  }
}

TEST(Options, AcceptsSeedsOf64Bits) {
  std::uint64_t seed = 0;
  parse({"--seed", "18446744073709551615"}, [&](CLI::App& app) { add_seed_option(app, seed); });
  EXPECT_EQ(seed, 18446744073709551615U);
}

TEST(Options, AnUnknownChoiceListsTheKnownOnes) {
  CommonOptions options;
  const auto add = [&](CLI::App& app) { add_common_options(app, options); };
  parse({"--format", "json"}, add);
  EXPECT_EQ(options.format, ReportFormat::kJson);
  EXPECT_THAT(error_of([&] {
                parse({"--format", "jsno"}, add);
              }),
              AllOf(HasSubstr("text, json"), HasSubstr("Did you mean `json`?")));
}

TEST(Link, HasOneBandwidthAndLatencyForBothDirections) {
  const Link link = parse_link("25GB/s,10us");
  EXPECT_EQ(link.d2h, (LinkDirection{25e9, 10'000}));
  EXPECT_EQ(link.h2d, link.d2h);
}

TEST(Link, MayOmitLatencyAndPerSecond) {
  EXPECT_EQ(parse_link("2GiB").d2h, (LinkDirection{2147483648.0, 0}));
}

TEST(Link, MayBeSharedIfItIsOnlyAssumed) {
  EXPECT_FALSE(parse_assumed_link("25GB/s,10us").is_shared);
  const Link link = parse_assumed_link("25GB/s,10us,shared");
  EXPECT_TRUE(link.is_shared);
  EXPECT_EQ(link.d2h, (LinkDirection{25e9, 10'000}));
  EXPECT_TRUE(parse_assumed_link("2GB/s,shared").is_shared);
  EXPECT_NE(error_of([] { parse_link("25GB/s,shared"); }), "no error");
  EXPECT_NE(error_of([] { parse_assumed_link("25GB/s,slice"); }), "no error");
}

TEST(Link, AnAssumedLinkMayBeSharedIfTheTracesIsNot) {
  const Link given = parse_assumed_link("25GB/s,shared");
  EXPECT_TRUE(link_to_assume(given, {{1e9, 5, 6}, {1e9, 5, 7}, 8}).is_shared);
}

TEST(Link, AnotherBandwidthKeepsTheShareOfBothDirectionsAtOnce) {
  Link known{{50e9, 5}, {50e9, 5}};
  known.bidirectional_bytes_per_second = 80e9;
  const Link given = parse_link("25GB/s");
  EXPECT_EQ(link_to_assume(given, known).bidirectional_bytes_per_second, 40e9);
  EXPECT_EQ(slower_of(known, given).bidirectional_bytes_per_second, 40e9) << "a cap does the same";
  EXPECT_EQ(slower_of(given, known).bidirectional_bytes_per_second, 40e9);
  EXPECT_EQ(link_to_assume(given, given).bidirectional_bytes_per_second, 0);
  known.is_shared = true;
  EXPECT_FALSE(known.slows_both());
}

TEST(Link, AnotherBandwidthTakesAsMuchTimeFromCompute) {
  const Link known{{50e9, 5, 0, 0.1}, {50e9, 5, 0, 0.2}};
  const Link given = parse_link("25GB/s");
  EXPECT_EQ(link_to_assume(given, known).d2h.compute_ns_per_byte, 0.1);
  EXPECT_EQ(slower_of(known, given).h2d.compute_ns_per_byte, 0.2);
}

TEST(Link, RejectsZeroBandwidthAndMissingUnits) {
  EXPECT_NE(error_of([] { parse_link("0"); }), "no error");
  EXPECT_NE(error_of([] { parse_link("1GB/s,10"); }), "no error");
  EXPECT_NE(error_of([] { parse_link("fast"); }), "no error");
}

TEST(PolicyOptions, WithoutFlagsItIsTheCommandsPreset) {
  EXPECT_EQ(policy_of({}).policy, preset_policy("offload"));
  EXPECT_EQ(policy_of({}, "keep").policy, preset_policy("keep"));
}

TEST(PolicyOptions, FlagsWithoutAPolicyRefineThePresetOffload) {
  Policy expected = preset_policy("offload");
  expected.stash_count = 3;
  EXPECT_EQ(policy_of({"--stash", "3"}, "keep").policy, expected);
}

TEST(PolicyOptions, FlagsOverrideThePreset) {
  const Policy policy = policy_of({"--threshold", "64KiB", "--stash", "3", "--stash-bytes", "1MiB",
                                   "--prefetch", "2MiB", "--copy-streams", "1", "--host-memory", "1GiB"})
                            .policy;
  EXPECT_EQ(policy.threshold_bytes, 64 * kKiB);
  EXPECT_EQ(policy.stash_count, 3);
  EXPECT_EQ(policy.stash_bytes, kMiB);
  EXPECT_EQ(policy.prefetch_bytes, 2 * kMiB);
  EXPECT_EQ(policy.copy_streams, 1);
  EXPECT_EQ(policy.host_memory_bytes, kGiB);
}

TEST(PolicyOptions, AThresholdTurnsKeepIntoOffloading) {
  const Policy policy = policy_of({"--policy", "keep", "--threshold", "1KiB"}).policy;
  EXPECT_EQ(policy.name, "offload");
  EXPECT_EQ(policy.threshold_bytes, kKiB);
}

TEST(PolicyOptions, RejectsFlagsThatThePolicyIgnores) {
  EXPECT_THAT(error_of([] {
                policy_of({"--policy", "keep", "--stash", "3"});
              }),
              HasSubstr("offloads nothing"));
  EXPECT_THAT(error_of([] { policy_of({"--policy", "trl", "--prefetch", "1MiB"}); }), HasSubstr("TRL"));
}

TEST(PolicyOptions, RejectsAPolicyThatIsNeitherPresetNorFile) {
  EXPECT_THAT(error_of([] { policy_of({"--policy", "nonesuch"}); }), HasSubstr("nonesuch"));
}

}  // namespace
}  // namespace offprof
