#include "profiler/calibration/gpu_measurement.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "engine/devices/host_memory.h"
#include "traces/base/error.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

constexpr int kGpuRounds = 5;
constexpr int kLargeCalls = 10;
/// Time for which a product runs until the clock is the one that the power limit leaves.
constexpr Nanoseconds kSustained = 3'000'000'000, kMostSustainedCalls = 100'000;
constexpr int kCopiesAtOnce = 16;  ///< in each direction: the last ones do not meet the whole time
constexpr int kSmallCalls = 64;
constexpr int kLaunches = 1000;
/// Large operators that keep the stream busy while the host launches kSmallCalls kernels.
constexpr int kBacklog = 4;
constexpr Bytes kLargeCopy = 256 * kMiB, kSmallCopy = 4 * kKiB;

using Call = std::function<void()>;

/// Returns the rate of both directions together, for as long as both copy. There are copies of both.
double rate_while_both_copy(const std::vector<CopyRecord>& copies) {
  Nanoseconds begin = 0, end = std::numeric_limits<Nanoseconds>::max();
  for (const CopyDirection direction : {CopyDirection::kD2h, CopyDirection::kH2d}) {
    Nanoseconds first = end, last = 0;
    for (const CopyRecord& copy : copies) {
      if (copy.direction != direction) continue;
      first = std::min(first, copy.begin_ns);
      last = std::max(last, copy.end_ns);
    }
    begin = std::max(begin, first);
    end = std::min(end, last);
  }
  double bytes = 0;
  for (const CopyRecord& copy : copies) {
    const Nanoseconds met = std::min(copy.end_ns, end) - std::max(copy.begin_ns, begin);
    if (met > 0)
      bytes += static_cast<double>(copy.bytes) * static_cast<double>(met) /
               static_cast<double>(copy.end_ns - copy.begin_ns);
  }
  return bytes * 1e9 / static_cast<double>(std::max<Nanoseconds>(end - begin, 1));
}

class Measurement {
 public:
  Measurement(Device& device, const std::function<void(const std::string&)>& progress)
      : device_(device), progress_(progress), idle_at_end_(device) {}

  GpuMeasurements run() {
    const auto properties = device_.gpu_properties();
    if (!properties) throw input_error("only a GPU has a profile to measure", "Choose one: --device cuda");
    GpuMeasurements measured{.properties = *properties};
    measure_memory(measured);
    measured.broadcast_ns = broadcast_ns();
    measured.product_ns = product_ns();
    measured.attention_ns = attention_ns();
    progress_("measuring copies");
    measured.link.d2h = direction_of(CopyQueue::kD2h, CopyDirection::kD2h);
    measured.link.h2d = direction_of(CopyQueue::kH2d, CopyDirection::kH2d);
    measured.link.bidirectional_bytes_per_second =
        bidirectional_rate(measured.link.d2h.bytes_per_second + measured.link.h2d.bytes_per_second);
    measured.sustained_product_ns = sustained_product_ns(measured.product_ns);  // last, as it heats
    return measured;
  }

 private:
  at::Tensor random(std::vector<std::int64_t> sizes) const {
    return at::randn(sizes, at::TensorOptions(device_.torch_device()).dtype(at::kBFloat16));
  }

  /// Returns the time of one of `calls` calls, one after the other: the median of several rounds. `before`
  /// gives the stream other work first.
  Nanoseconds time_of(int calls, const Call& before, const Call& call) {
    std::vector<Nanoseconds> times;
    call();  // memory and kernel code are there from the second call on
    for (int round = 0; round < kGpuRounds; ++round) {
      device_.synchronize();
      before();
      const Device::TimeMark begin = device_.mark();
      for (int i = 0; i < calls; ++i) call();
      const Device::TimeMark end = device_.mark();
      check_marks(device_);
      device_.synchronize();
      const Nanoseconds all = device_.time_of(end) - device_.time_of(begin);
      times.push_back(std::llround(static_cast<double>(all) / calls));
    }
    return summarize_measured(std::move(times)).median_ns;
  }

  Nanoseconds time_of(const Call& call) { return time_of(kLargeCalls, call, call); }

  void measure_memory(GpuMeasurements& measured) {
    progress_("measuring the memory's bandwidth");
    at::Tensor sum = random({kAddElements});
    const at::Tensor other = random({kAddElements});
    const Call add = [&] { sum.add_(other); };
    measured.add_ns = time_of(add);
    progress_("measuring launches");
    at::Tensor one = random({1});
    const Call small = [&] { one.add_(one); };
    const Call backlog = [&] {
      for (int i = 0; i < kBacklog; ++i) add();
    };
    measured.small_kernel_ns = time_of(kSmallCalls, backlog, small);
    measured.launch_ns = time_of(
        kLaunches, [] {}, small);
  }

  Nanoseconds broadcast_ns() {
    progress_("measuring kernels that load element by element");
    at::Tensor matrix = random({kBroadcastRows, kBroadcastColumns});
    const at::Tensor column = at::ones({kBroadcastRows, 1}, matrix.options());
    return time_of([&] { matrix.mul_(column); });
  }

  Call product() const {
    return [a = random({kProductWidth, kProductWidth}), b = random({kProductWidth, kProductWidth})] {
      at::mm(a, b);
    };
  }

  Nanoseconds product_ns() {
    progress_("measuring matrix products");
    return time_of(product());
  }

  /// Returns the time of a product that takes `short_ns` at first, after it has run for kSustained.
  Nanoseconds sustained_product_ns(Nanoseconds short_ns) {
    progress_("measuring the clock under load");
    const Call multiply = product();
    const Nanoseconds calls = std::min(kSustained / std::max<Nanoseconds>(short_ns, 1), kMostSustainedCalls);
    for (Nanoseconds i = 0; i < calls; ++i) multiply();
    return time_of(multiply);
  }

  Nanoseconds attention_ns() {
    progress_("measuring attention");
    const auto tensor = [&] {
      return random({kAttentionBatch, kAttentionHeads, kAttentionPositions, kAttentionWidth});
    };
    const at::Tensor query = tensor(), key = tensor(), value = tensor();
    return time_of([&] { at::_scaled_dot_product_flash_attention(query, key, value); });
  }

  LinkDirection direction_of(CopyQueue queue, CopyDirection direction) {
    const c10::Storage on_device = device_.allocate(kLargeCopy);
    const HostMemory on_host(device_, kLargeCopy);
    const auto copy_ns = [&](Bytes bytes) {
      device_.take_copy_records();
      const bool is_out = direction == CopyDirection::kD2h;
      void* const to = is_out ? static_cast<void*>(on_host.get()) : on_device.mutable_data();
      const void* const from = is_out ? on_device.data() : static_cast<const void*>(on_host.get());
      // The first copy keeps the queue busy while the host requests the others.
      device_.copy(queue, {to, from, kLargeCopy, direction, 0});
      for (int i = 0; i < kGpuRounds; ++i) device_.copy(queue, {to, from, bytes, direction, 1});
      std::vector<Nanoseconds> times;
      for (const CopyRecord& copy : device_.take_copy_records())
        if (copy.tag == 1) times.push_back(copy.end_ns - copy.begin_ns);
      return static_cast<double>(summarize_measured(std::move(times)).median_ns);
    };
    const double large = copy_ns(kLargeCopy), small = copy_ns(kSmallCopy);
    const double bytes_per_ns = static_cast<double>(kLargeCopy - kSmallCopy) / std::max(large - small, 1.0);
    const double latency = small - static_cast<double>(kSmallCopy) / bytes_per_ns;
    return {bytes_per_ns * 1e9, std::max<Nanoseconds>(std::llround(latency), 1)};
  }

  /// Returns the rate of copies in both directions at once; 0: the directions do not slow each other down.
  double bidirectional_rate(double sum_of_both) {
    constexpr double kNoLessThanSum = 0.98;
    const c10::Storage out_of = device_.allocate(kLargeCopy), into = device_.allocate(kLargeCopy);
    const HostMemory to_host(device_, kLargeCopy), from_host(device_, kLargeCopy);
    std::vector<double> rates;
    for (int round = 0; round < kGpuRounds; ++round) {
      device_.synchronize();
      device_.take_copy_records();
      for (int i = 0; i < kCopiesAtOnce; ++i) {
        device_.copy(CopyQueue::kD2h, {to_host.get(), out_of.data(), kLargeCopy, CopyDirection::kD2h, 0});
        device_.copy(CopyQueue::kH2d,
                     {into.mutable_data(), from_host.get(), kLargeCopy, CopyDirection::kH2d, 0});
      }
      rates.push_back(rate_while_both_copy(device_.take_copy_records()));
    }
    std::ranges::sort(rates);
    const double median = rates[rates.size() / 2];
    return median < kNoLessThanSum * sum_of_both ? median : 0;
  }

  Device& device_;
  const std::function<void(const std::string&)>& progress_;
  IdleAtEnd idle_at_end_;
};

}  // namespace

GpuMeasurements measure_gpu(Device& device, const std::function<void(const std::string&)>& progress) {
  const at::NoGradGuard no_grad;
  GpuMeasurements measured = Measurement(device, progress).run();
  device.take_copy_records();
  device.take_exposed_ns();
  device.release_cache();
  return measured;
}

}  // namespace offprof
