#include "engine/devices/virtual_gpu/model/kernel_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/devices/virtual_gpu/model/attention_time.h"
#include "engine/devices/virtual_gpu/model/convolution_time.h"
#include "engine/devices/virtual_gpu/model/product_time.h"
#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

std::string key_of(const OpCall& op, bool with_dtypes) {
  std::vector<OperandKey> operands;
  operands.reserve(op.operands.size());
  for (const OperandShape& operand : op.operands)
    operands.push_back({with_dtypes ? operand.dtype : std::string_view(), operand.sizes});
  return op_key(op.name, operands);
}

/// Returns the recorded time by the key with dtypes, or else by the key without, since traces have no dtypes
/// of tensors in lists.
std::optional<Nanoseconds> recorded_time(const KernelTimes& recorded, const OpCall& op) {
  const auto exact = recorded.of_op(key_of(op, true));
  return exact ? exact : recorded.of_op(key_of(op, false));
}

/// Returns the peak rate for the operator. Without tensor cores everything but float64 is computed at the
/// rate of float32, as are dtypes that the profile does not name (integers, complex numbers).
double peak_of(const DeviceProfile& profile, const OpWork& work) {
  const bool own_rate = work.tensor_cores || work.dtype == "float64";
  const auto found =
      own_rate ? profile.flops_per_second.find(std::string(work.dtype)) : profile.flops_per_second.end();
  return found != profile.flops_per_second.end() ? found->second : profile.flops_per_second.at("float32");
}

/// Operations in a second of a product whose 16-bit operands threads load a few elements at a time, since
/// their rows are not aligned to 16 bytes. cuBLAS 13 has tiles of 128 x 128 if the rows of the result are not
/// aligned, and of 256 x 128 otherwise, which do 128 and 171 operations with each element that they load. On
/// an H100 they load 2.1 times as many elements in a cycle as elementwise kernels.
double unaligned_rate(const DeviceProfile& profile, const ProductShape& product) {
  constexpr double kOperationsOfSquare = 128, kOperationsOfWide = 171, kOfElementwise = 2.1;
  const bool is_wide = std::fmod(product.columns, static_cast<double>(ProductShape{}.aligned_elements)) == 0;
  return profile.multiprocessors * profile.clock_khz * 1e3 * profile.elements_per_cycle * kOfElementwise *
         static_cast<double>(product.aligned_elements) * (is_wide ? kOperationsOfWide : kOperationsOfSquare);
}

double product_share(const DeviceProfile& profile, const OpWork& work) {
  const double share = profile.compute_efficiency * tile_share(*work.product, profile.multiprocessors);
  const bool is_aligned = work.product->aligned_elements == ProductShape{}.aligned_elements;
  if (is_aligned || !work.has_16_bits()) return share;
  return std::min(share, unaligned_rate(profile, *work.product) / peak_of(profile, work));
}

/// Returns the time of the operator's arithmetic at the clock of short runs.
double unlimited_seconds(const DeviceProfile& profile, const OpWork& work) {
  const double peak = peak_of(profile, work), rate = peak * profile.compute_efficiency;
  if (work.attention) return work.flops / (peak * attention_share(profile, work));
  if (work.convolution) return convolution_seconds(profile, work, rate);
  if (!work.product) return work.flops / rate;
  const double order = work.dtype == "tf32" && work.product->sums_apart ? kApartInTf32 : 1;
  return work.flops / (peak * product_share(profile, work) * order);
}

double compute_seconds(const DeviceProfile& profile, const OpWork& work) {
  return work.flops == 0 ? 0 : unlimited_seconds(profile, work) / profile.sustained_clock;
}

/// Returns the blocks that are on the multiprocessors at the same time.
double resident_blocks(const DeviceProfile& profile, const KernelLaunch& launch) {
  const double by_threads = std::floor(profile.max_threads_per_multiprocessor / launch.threads_per_block());
  const double fitting =
      std::clamp(by_threads, 1.0, static_cast<double>(profile.max_blocks_per_multiprocessor));
  return std::min(launch.blocks(), fitting * profile.multiprocessors);
}

/// Returns how often each multiprocessor has one of the blocks of a kernel that keeps so many of them busy.
double turns(const DeviceProfile& profile, const KernelWork& kernel) {
  return std::max(1.0, kernel.most_multiprocessors / profile.multiprocessors);
}

/// Returns the time of the kernel's waits, in each wave of resident blocks.
double wait_seconds(const DeviceProfile& profile, const KernelLaunch& launch, const KernelWork& kernel) {
  if (kernel.waits_of_block == 0) return 0;
  const double waves =
      kernel.has_unknown_launch ? turns(profile, kernel) : launch.blocks() / resident_blocks(profile, launch);
  return kernel.waits_of_block * waves * static_cast<double>(profile.memory_latency_ns) /
         kNanosecondsPerSecond;
}

/// Returns the share of a product's traffic that its operations do not hide: a tile is written once all of
/// its operations are done, of which there are few if the inner dimension is short.
double exposed_share(const ProductShape& product) {
  constexpr double kAllExposed = 64;  // inner dimension; of batched products on an H100
  return std::min(1.0, kAllExposed / std::max(product.inner, 1.0));
}

/// Returns the share of second reads that the L2 cache answers, given what resident blocks use as a multiple
/// of its size. It falls as the bandwidth of gpu-benches' gpu-l2-cache on an A100 does (te42kyfo).
double hit_share(double use) {
  constexpr double kAllHit = 0.7, kNoneHits = 1.4;
  return std::clamp((kNoneHits - use) / (kNoneHits - kAllHit), 0.0, 1.0);
}

double memory_seconds(const DeviceProfile& profile, const KernelLaunch& launch, const KernelWork& kernel) {
  const double resident = kernel.has_unknown_launch ? 1 : resident_blocks(profile, launch);
  const double use = resident * kernel.bytes_per_block / static_cast<double>(profile.l2_cache_bytes);
  const double bytes = static_cast<double>(kernel.work.bytes) +
                       static_cast<double>(kernel.bytes_read_again) * (1 - hit_share(use));
  const double busy_share = kernel.most_multiprocessors > 0
                                ? std::min(1.0, kernel.most_multiprocessors / profile.multiprocessors) *
                                      (1 - kernel.loss_of_single_block / turns(profile, kernel))
                                : 1;
  const double by_peak = profile.memory_bytes_per_second * profile.memory_efficiency * busy_share;
  const double by_threads = kernel.has_unknown_launch
                                ? by_peak
                                : resident * launch.threads_per_block() * kernel.bytes_on_the_way *
                                      kNanosecondsPerSecond / static_cast<double>(profile.memory_latency_ns);
  return bytes / std::min(by_peak, by_threads);
}

double element_seconds(const DeviceProfile& profile, const KernelLaunch& launch, const KernelWork& kernel) {
  double per_second = profile.elements_per_second();
  if (kernel.single_elements_on_the_way > 0) {
    const double on_the_way =
        resident_blocks(profile, launch) * launch.threads_per_block() * kernel.single_elements_on_the_way;
    per_second = std::min(
        per_second, on_the_way * kNanosecondsPerSecond / static_cast<double>(profile.memory_latency_ns));
  }
  return kernel.single_elements / per_second;
}

}  // namespace

Nanoseconds modelled_time(const DeviceProfile& profile, const KernelLaunch& launch,
                          const KernelWork& kernel) {
  const double by_compute = compute_seconds(profile, kernel.work);
  const double by_memory = memory_seconds(profile, launch, kernel) + wait_seconds(profile, launch, kernel);
  double seconds = std::max({by_compute, by_memory, element_seconds(profile, launch, kernel)});
  if (kernel.work.product) seconds += exposed_share(*kernel.work.product) * std::min(by_compute, by_memory);
  if (kernel.work.convolution) seconds += beside_products_seconds(profile, *kernel.work.convolution);
  if (kernel.work.attention) seconds += beside_backward_seconds(profile, *kernel.work.attention);
  const auto latency_ns = static_cast<double>(profile.memory_latency_ns);
  const double streaming_ns = std::max(seconds * kNanosecondsPerSecond, kernel.dependent_loads * latency_ns);
  return std::min(profile.kernel_ns + to_whole(streaming_ns + kernel.closing_loads * latency_ns),
                  kLongestMeasured);
}

KernelCost::KernelCost(DeviceProfile profile, KernelTimes recorded)
    : profile_(std::move(profile)), recorded_(std::move(recorded)) {}

KernelTime KernelCost::time_of(const KernelLaunch& launch, const OpCall* op, Bytes allocated,
                               bool first) const {
  const bool is_of_op = op != nullptr && !launch.argument_bytes;
  const double flops = is_of_op && first ? work_of(*op, allocated).flops : 0;
  if (!recorded_.empty()) {
    if (is_of_op)
      if (const auto of_op = recorded_time(recorded_, *op))
        return {first ? *of_op : 0, TimeSource::kRecordedOp, flops};
    if (const auto of_kernel = recorded_.of_kernel(kernel_key(launch.name, launch.grid, launch.block)))
      return {*of_kernel, TimeSource::kRecordedKernel, flops};
  }
  if (launch.argument_bytes) {
    const KernelWork moved{.work = {.bytes = *launch.argument_bytes}, .has_unknown_launch = true};
    return {modelled_time(profile_, launch, moved)};
  }
  if (op == nullptr) return {profile_.kernel_ns};
  const KernelWork work = work_of_kernel(launch, *op, allocated, first);
  return {modelled_time(profile_, launch, work), TimeSource::kEstimate, flops};
}

}  // namespace offprof
