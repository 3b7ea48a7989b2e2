#include "traces/model/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/base/whole_number.h"

namespace offprof {
namespace {

template <auto Member>
std::optional<double> get(const Metrics& metrics) {
  const auto& value = metrics.*Member;
  return value ? std::optional<double>(static_cast<double>(*value)) : std::nullopt;
}

template <auto Member>
void set(Metrics& metrics, double value) {
  using Value = typename std::remove_reference_t<decltype(metrics.*Member)>::value_type;
  if constexpr (std::is_floating_point_v<Value>) {
    metrics.*Member = value;
  } else {
    metrics.*Member = to_whole(value);
  }
}

template <auto Member>
MetricKey key(std::string_view name, MetricUnit unit, bool is_predicted = true) {
  return {name, unit, is_predicted, &get<Member>, &set<Member>};
}

}  // namespace

const std::vector<MetricKey>& metric_keys() {
  using enum MetricUnit;
  static const std::vector<MetricKey> keys = {
      key<&Metrics::device_peak_bytes>("device_peak_bytes", kBytes),
      key<&Metrics::device_resident_bytes>("device_resident_bytes", kBytes),
      key<&Metrics::device_allocated_peak_bytes>("device_allocated_peak_bytes", kBytes),
      key<&Metrics::device_reserved_peak_bytes>("device_reserved_peak_bytes", kBytes),
      key<&Metrics::host_peak_bytes>("host_peak_bytes", kBytes),
      // A replay does not model the slabs of pinned memory that are reserved from step to step.
      key<&Metrics::host_reserved_bytes>("host_reserved_bytes", kBytes, /*is_predicted=*/false),
      key<&Metrics::disk_peak_bytes>("disk_peak_bytes", kBytes),
      key<&Metrics::step_time_ns>("step_time_ns", kNanoseconds),
      key<&Metrics::compute_ns>("compute_ns", kNanoseconds),
      key<&Metrics::d2h_bytes>("d2h_bytes", kBytes),
      key<&Metrics::h2d_bytes>("h2d_bytes", kBytes),
      key<&Metrics::disk_write_bytes>("disk_write_bytes", kBytes),
      key<&Metrics::disk_read_bytes>("disk_read_bytes", kBytes),
      key<&Metrics::d2h_busy_ns>("d2h_busy_ns", kNanoseconds),
      key<&Metrics::h2d_busy_ns>("h2d_busy_ns", kNanoseconds),
      key<&Metrics::exposed_ns>("exposed_ns", kNanoseconds),
      key<&Metrics::launch_gap_ns>("launch_gap_ns", kNanoseconds),
      key<&Metrics::overlap_ratio>("overlap_ratio", kRatio),
  };
  return keys;
}

Bytes device_bytes_taken(const Metrics& metrics) {
  return metrics.device_reserved_peak_bytes.value_or(metrics.device_peak_bytes.value_or(0));
}

const MetricKey* find_metric(std::string_view name) {
  const auto& keys = metric_keys();
  const auto found = std::ranges::find(keys, name, &MetricKey::name);
  return found == keys.end() ? nullptr : &*found;
}

std::string format_metric(MetricUnit unit, double value) {
  if (unit == MetricUnit::kRatio) return fmt::format("{:.3f}", value);
  const std::int64_t count = to_whole(value);
  return unit == MetricUnit::kBytes ? format_bytes(count) : format_duration(count);
}

std::optional<double> overlap_ratio(Nanoseconds exposed, Nanoseconds d2h_busy, Nanoseconds h2d_busy) {
  const double busy = static_cast<double>(d2h_busy) + static_cast<double>(h2d_busy);
  if (busy <= 0) return std::nullopt;
  return std::max(0.0, 1.0 - static_cast<double>(exposed) / busy);
}

}  // namespace offprof
