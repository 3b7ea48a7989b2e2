#include "simulator/tuner/prices.h"

#include <gtest/gtest.h>

#include "tests/support/sample_program.h"

namespace offprof {
namespace {

Candidate candidate(Bytes peak, Nanoseconds time) {
  Candidate made;
  made.predicted.device_peak_bytes = peak;
  made.predicted.step_time_ns = time;
  return made;
}

TEST(Reliefs, AreEmptyIfNothingIsCopied) {
  const Step step(ChainSketch::program(4, 100));
  EXPECT_TRUE(reliefs_of(step, preset_policy("keep"), {{1e6, 5}, {1e6, 5}, 5}).empty());
}

TEST(Reliefs, TheSlowDirectionComesFirst) {
  const Step step(ChainSketch::program(4, 100));
  const auto reliefs = reliefs_of(step, preset_policy("offload"), {{1e9, 5}, {1e8, 5}, 1});
  ASSERT_EQ(reliefs.size(), 4U);
  EXPECT_EQ(reliefs[0].constraint, Constraint::kH2dBandwidth);
  EXPECT_EQ(reliefs[0].gain_ns, 4 * 1000);  // of each of four reloads
  EXPECT_EQ(reliefs[1].constraint, Constraint::kD2hBandwidth);
  EXPECT_EQ(reliefs[1].gain_ns, 4 * 100);
  EXPECT_EQ(reliefs[2].constraint, Constraint::kLatency);
  EXPECT_EQ(reliefs[2].gain_ns, 8 * 5);
  EXPECT_EQ(reliefs[3].constraint, Constraint::kLaunch);
  EXPECT_EQ(reliefs[3].gain_ns, 8);
}

TEST(MemoryPrice, IsTheAmountThatGainsMostPerByte) {
  const std::vector<Candidate> frontier = {candidate(50, 200), candidate(100, 100), candidate(110, 95),
                                           candidate(120, 60), candidate(200, 55)};
  const auto price = memory_price(frontier, frontier[1]);
  ASSERT_TRUE(price);
  EXPECT_EQ(price->more_bytes, 20);
  EXPECT_EQ(price->gain_ns, 40);
}

TEST(MemoryPrice, IsAbsentForTheFastestCandidate) {
  const std::vector<Candidate> frontier = {candidate(50, 200), candidate(100, 100)};
  EXPECT_FALSE(memory_price(frontier, frontier[1]));
}

TEST(MemoryPrice, CountsReservedBytesWithAnAllocator) {
  std::vector<Candidate> frontier = {candidate(50, 200), candidate(100, 100)};
  frontier[0].predicted.device_reserved_peak_bytes = 1000;
  frontier[1].predicted.device_reserved_peak_bytes = 4000;
  EXPECT_EQ(memory_price(frontier, frontier[0])->more_bytes, 3000);
}

TEST(FillsHost, ReturnsTrueIfTheCapKeptATensor) {
  const Step step(ChainSketch::program(4, 100));
  Policy policy;
  EXPECT_FALSE(fills_host(step, policy));
  policy.host_memory_bytes = 250;
  EXPECT_TRUE(fills_host(step, policy));
}

TEST(TimesAsFast, ChangesOnlyTheBandwidth) {
  Link link{{1e9, 5}, {2e9, 6}, 7}, twice{{2e9, 5}, {4e9, 6}, 7};
  link.bidirectional_bytes_per_second = 2.5e9;
  twice.bidirectional_bytes_per_second = 5e9;
  EXPECT_EQ(times_as_fast(link, 2), twice);
}

}  // namespace
}  // namespace offprof
