#include "traces/model/metrics.h"

#include <gmock/gmock.h>

#include "traces/base/error.h"
#include "traces/format/metrics_io.h"

namespace offprof {
namespace {

TEST(OverlapRatio, IsTheHiddenShareOfCopyTime) {
  EXPECT_DOUBLE_EQ(*overlap_ratio(25, 60, 40), 0.75);
}

TEST(OverlapRatio, IsNeverNegative) {
  EXPECT_DOUBLE_EQ(*overlap_ratio(200, 60, 40), 0);
}

TEST(OverlapRatio, IsAbsentWithoutCopies) {
  EXPECT_FALSE(overlap_ratio(0, 0, 0));
}

TEST(MetricKeys, ReadBackTheValuesTheySet) {
  Metrics metrics;
  double value = 1;
  for (const MetricKey& key : metric_keys()) {
    EXPECT_FALSE(key.get(metrics)) << key.name;
    key.set(metrics, value);
    EXPECT_EQ(key.get(metrics), value) << key.name;
    value *= 2;
  }
}

TEST(MetricKeys, BeginWithThePeak) {
  EXPECT_EQ(metric_keys().front().name, "device_peak_bytes");
}

TEST(MetricKeys, OnlyReservedHostMemoryIsNotPredicted) {
  for (const MetricKey& key : metric_keys()) EXPECT_EQ(key.is_predicted, key.name != "host_reserved_bytes");
}

TEST(FindMetric, FindsByName) {
  ASSERT_NE(find_metric("exposed_ns"), nullptr);
  EXPECT_EQ(find_metric("exposed_ns")->unit, MetricUnit::kNanoseconds);
  EXPECT_EQ(find_metric("speed"), nullptr);
}

TEST(FormatMetric, UsesTheUnit) {
  EXPECT_EQ(format_metric(MetricUnit::kBytes, 1.5 * kMiB), "1.50 MiB");
  EXPECT_EQ(format_metric(MetricUnit::kNanoseconds, 3.14e6), "3.14 ms");
  EXPECT_EQ(format_metric(MetricUnit::kRatio, 0.93), "0.930");
}

TEST(MetricsJson, LeavesOutAbsentFigures) {
  Metrics metrics;
  metrics.h2d_bytes = 0;
  EXPECT_EQ(metrics_to_json(metrics).dump(), R"({"h2d_bytes":0})");
}

TEST(MetricsJson, PutsTheSpreadAfterItsKey) {
  Metrics metrics;
  metrics.step_time_ns = 5;
  metrics.compute_ns = 4;
  metrics.spread = {{"step_time_ns_max", 6}, {"step_time_ns_min", 3}};
  EXPECT_EQ(metrics_to_json(metrics).dump(),
            R"({"step_time_ns":5,"step_time_ns_min":3,"step_time_ns_max":6,"compute_ns":4})");
}

TEST(DeviceBytesTaken, AreThePeakOrTheReservedBytesOfAnAllocator) {
  Metrics metrics;
  metrics.device_peak_bytes = 3;
  EXPECT_EQ(device_bytes_taken(metrics), 3);
  metrics.device_reserved_peak_bytes = 5;
  EXPECT_EQ(device_bytes_taken(metrics), 5);
}

TEST(MetricsJson, ReadsBackWhatItWrote) {
  Metrics metrics;
  double value = 0.5;
  for (const MetricKey& key : metric_keys()) key.set(metrics, value += 3);
  metrics.spread = {{"step_time_ns_max", 6}};
  EXPECT_EQ(metrics_from_json(metrics_to_json(metrics), "here"), metrics);
}

TEST(MetricsJson, SkipsKeysOfLaterVersions) {
  const auto json = nlohmann::json::parse(R"({"d2h_bytes": 3, "disk_bytes": 4})");
  EXPECT_EQ(metrics_from_json(json, "here").d2h_bytes, 3);
}

TEST(MetricsJson, RejectsNegativeFigures) {
  const auto json = nlohmann::json::parse(R"({"d2h_bytes": -3})");
  EXPECT_THROW(metrics_from_json(json, "here"), Error);
}

TEST(MetricsJson, ReadsBackTheLargestFigures) {
  const auto json = nlohmann::json::parse(
      R"({"d2h_bytes": 9223372036854775807, "step_time_ns": 9223372036854775807, "overlap_ratio": 1e308})");
  const Metrics metrics = metrics_from_json(json, "here");
  EXPECT_EQ(metrics.d2h_bytes, std::numeric_limits<Bytes>::max());
  EXPECT_EQ(nlohmann::json(metrics_to_json(metrics)), json);
  EXPECT_EQ(format_metric(MetricUnit::kBytes, 1e300), "8.00 EiB");
}

TEST(LedgerJson, RejectsASumAboveTheLimitOfAStepProgram) {
  const auto row = [](const char* reason, std::int64_t bytes) {
    return nlohmann::json({{"placement", "device"}, {"reason", reason}, {"tensors", 1}, {"bytes", bytes}});
  };
  const std::int64_t half = std::int64_t{1} << 59;
  EXPECT_NO_THROW(ledger_from_json({row("input", half), row("buffer", half)}, "here"));
  EXPECT_THROW(ledger_from_json({row("input", half), row("buffer", half + 1)}, "here"), Error);
}

TEST(LedgerJson, ReadsBackWhatItWrote) {
  Ledger ledger;
  for (auto reason = PlacementReason::kOffloaded; reason <= PlacementReason::kNotInPlan;
       reason = static_cast<PlacementReason>(static_cast<int>(reason) + 1)) {
    ledger[{Place::kDevice, reason}] = {static_cast<std::int64_t>(reason), 10};
  }
  EXPECT_EQ(ledger_from_json(ledger_to_json(ledger), "here"), ledger);
}

TEST(LedgerJson, NamesPlacementAndReason) {
  const Ledger ledger = {{{Place::kHost, PlacementReason::kSharedCopy}, {2, 64}}};
  EXPECT_EQ(ledger_to_json(ledger).dump(),
            R"([{"placement":"host","reason":"shared_copy","tensors":2,"bytes":64}])");
}

}  // namespace
}  // namespace offprof
