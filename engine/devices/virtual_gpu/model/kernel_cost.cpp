#include "engine/devices/virtual_gpu/model/kernel_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/devices/virtual_gpu/model/product_time.h"
#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

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

/// Factors of the share of the peak that attention kernels reach.
struct AttentionRates {
  double narrow = 1;                                     ///< heads of width 64, relative to 128
  double backward = 1;                                   ///< relative to forward
  double half_positions = 0, half_positions_causal = 0;  ///< of keys, at which half of the share is reached
};

/// Read off FlashAttention-2's figures for A100 and H100 (Dao 2023; flash2_a100_fwd_bwd_benchmark.png,
/// flash3_fp16_fwd.png of Dao-AILab/flash-attention).
constexpr AttentionRates kFlash = {0.84, 0.83, 150, 500};
/// cuDNN's kernels, which PyTorch chooses on compute capability 9.0 and 10.0, and efficient attention in
/// float32. From cuDNN 9.19 and PyTorch 2.11 on an H100 (traces/recorded/h100/kernels.csv), as are their
/// shares of what matrix products reach.
constexpr AttentionRates kCudnn = {0.75, 0.76, 150, 850}, kFloat32 = {1, 1, 250, 400};
constexpr double kCudnnOfProducts = 0.89, kFloat32OfProducts = 0.75;

/// Share of their speed that cuDNN's kernels reach if they add a mask to the scores. From GPT-2 and Llama of
/// transformers 4.57 on an H100, with masks of all pairs of positions.
constexpr double kMaskedForward = 0.54, kMaskedBackward = 0.73;

/// Returns the share of the peak, from that of long sequences at width 128.
double attention_share(double of_long, const AttentionRates& rates, const AttentionShape& shape) {
  constexpr double kNarrowWidth = 64;
  const double half = shape.is_causal ? rates.half_positions_causal : rates.half_positions;
  return of_long * (shape.width <= kNarrowWidth ? rates.narrow : 1) *
         (shape.is_backward ? rates.backward : 1) * shape.positions / (shape.positions + half);
}

bool has_16_bits(const OpWork& work) {
  return work.dtype == "bfloat16" || work.dtype == "float16";
}

/// The profile has the share of flash attention.
double attention_share(const DeviceProfile& profile, const OpWork& work) {
  const AttentionShape& shape = *work.attention;
  if (!has_16_bits(work))
    return attention_share(profile.compute_efficiency * kFloat32OfProducts, kFloat32, shape);
  if (!shape.is_cudnn) return attention_share(profile.attention_efficiency, kFlash, shape);
  const double masked = shape.is_backward ? kMaskedBackward : kMaskedForward;
  return attention_share(profile.compute_efficiency * kCudnnOfProducts, kCudnn, shape) *
         (shape.has_mask ? masked : 1);
}

/// Channels for which cuDNN has kernels that load whole rows of them.
constexpr double kLeastChannels = 8;

/// Share of what matrix products reach of the same size. Parts of images are gathered while they are
/// multiplied; filters with few channels are padded, and loaded by shorter instructions. From cuDNN 9.19 on
/// an H100.
double convolution_share(const DeviceProfile& profile, const ConvolutionShape& shape) {
  constexpr double kOfProducts = 0.8, kFewChannelsShare = 0.1;
  return kOfProducts * tile_share(shape.product, profile.multiprocessors) *
         (shape.channels < kLeastChannels ? kFewChannelsShare : 1);
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
  if (is_aligned || !has_16_bits(work)) return share;
  return std::min(share, unaligned_rate(profile, *work.product) / peak_of(profile, work));
}

double compute_share(const DeviceProfile& profile, const OpWork& work) {
  if (work.attention) return attention_share(profile, work);
  if (work.convolution) return profile.compute_efficiency * convolution_share(profile, *work.convolution);
  return work.product ? product_share(profile, work) : profile.compute_efficiency;
}

/// Returns the operations of other products that take as long. Tensor cores take operands in tf32 only along
/// the dimension that is summed over. Images that are multiplied as they are have it outermost, and so have
/// both operands of the gradient of a convolution's weight. From cuDNN 9.19 on an H100.
double weighted_flops(const OpWork& work) {
  constexpr double kShareOfOthers = 0.55;
  if (!work.convolution || work.dtype != "tf32" || work.convolution->channels < kLeastChannels)
    return work.flops;
  const double of_weight = work.convolution->weight_gradient_share * (1 / kShareOfOthers - 1);
  return work.flops * (1 + of_weight) / (work.convolution->is_of_matrices ? kShareOfOthers : 1);
}

double compute_seconds(const DeviceProfile& profile, const OpWork& work) {
  return work.flops == 0 ? 0 : weighted_flops(work) / (peak_of(profile, work) * compute_share(profile, work));
}

/// Returns the blocks that are on the multiprocessors at the same time.
double resident_blocks(const DeviceProfile& profile, const KernelLaunch& launch) {
  const double by_threads = std::floor(profile.max_threads_per_multiprocessor / launch.threads_per_block());
  const double fitting =
      std::clamp(by_threads, 1.0, static_cast<double>(profile.max_blocks_per_multiprocessor));
  return std::min(launch.blocks(), fitting * profile.multiprocessors);
}

/// Returns the time of the kernel's waits, in each wave of resident blocks.
double wait_seconds(const DeviceProfile& profile, const KernelLaunch& launch, const KernelWork& kernel) {
  if (kernel.waits_of_block == 0) return 0;
  const double waves = launch.blocks() / resident_blocks(profile, launch);
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
  constexpr double kBytesOnTheWay = 16;
  const double resident = kernel.has_unknown_launch ? 1 : resident_blocks(profile, launch);
  const double use = resident * kernel.bytes_per_block / static_cast<double>(profile.l2_cache_bytes);
  const double bytes = static_cast<double>(kernel.work.bytes) +
                       static_cast<double>(kernel.bytes_read_again) * (1 - hit_share(use));
  const double busy_share = kernel.most_multiprocessors > 0
                                ? std::min(1.0, kernel.most_multiprocessors / profile.multiprocessors)
                                : 1;
  const double by_peak = profile.memory_bytes_per_second * profile.memory_efficiency * busy_share;
  const double by_threads = kernel.has_unknown_launch
                                ? by_peak
                                : resident * launch.threads_per_block() * kBytesOnTheWay *
                                      kNanosecondsPerSecond / static_cast<double>(profile.memory_latency_ns);
  return bytes / std::min(by_peak, by_threads);
}

/// Returns the elements that all multiprocessors load and store one by one in a second.
double elements_per_second(const DeviceProfile& profile) {
  constexpr double kHertzPerKilohertz = 1e3;
  return profile.elements_per_cycle * profile.multiprocessors * profile.clock_khz * kHertzPerKilohertz;
}

double element_seconds(const DeviceProfile& profile, const KernelLaunch& launch, const KernelWork& kernel) {
  double per_second = elements_per_second(profile);
  if (kernel.single_elements_on_the_way > 0) {
    const double on_the_way =
        resident_blocks(profile, launch) * launch.threads_per_block() * kernel.single_elements_on_the_way;
    per_second = std::min(
        per_second, on_the_way * kNanosecondsPerSecond / static_cast<double>(profile.memory_latency_ns));
  }
  return kernel.single_elements / per_second;
}

/// Returns the time of the kernels that reorder the operands of a convolution.
double reorder_seconds(const DeviceProfile& profile, const ConvolutionShape& shape) {
  constexpr double kElementShare = 1 / 1.5;  // of the time of an elementwise kernel with three operands
  const double by_memory = static_cast<double>(shape.reordered_bytes) /
                           (profile.memory_bytes_per_second * profile.memory_efficiency);
  const double by_elements = kElementShare * shape.reordered_elements / elements_per_second(profile);
  return std::max(by_memory, by_elements) +
         shape.reorders * static_cast<double>(profile.kernel_ns) / kNanosecondsPerSecond;
}

}  // namespace

Nanoseconds modelled_time(const DeviceProfile& profile, const KernelLaunch& launch,
                          const KernelWork& kernel) {
  const double by_compute = compute_seconds(profile, kernel.work);
  const double by_memory = memory_seconds(profile, launch, kernel) + wait_seconds(profile, launch, kernel);
  double seconds = std::max({by_compute, by_memory, element_seconds(profile, launch, kernel)});
  if (kernel.work.product) seconds += exposed_share(*kernel.work.product) * std::min(by_compute, by_memory);
  if (kernel.work.convolution) seconds += reorder_seconds(profile, *kernel.work.convolution);
  const double loads_ns = kernel.dependent_loads * static_cast<double>(profile.memory_latency_ns);
  return std::min(profile.kernel_ns + to_whole(std::max(seconds * kNanosecondsPerSecond, loads_ns)),
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
