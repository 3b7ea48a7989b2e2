#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/devices/virtual_gpu/model/profile.h"
#include "traces/base/units.h"
#include "traces/model/link.h"

namespace offprof {

// Operators whose times determine the figures of a profile. Each is bound by that figure alone.

/// `add_` of two tensors of so many bfloat16 numbers: bound by the bandwidth of the memory.
inline constexpr std::int64_t kAddElements = std::int64_t{1} << 28;
/// `mul_` of a matrix with so many rows and columns in bfloat16 by a column that is broadcast, whose threads
/// load element by element.
inline constexpr std::int64_t kBroadcastRows = 1 << 16, kBroadcastColumns = 1 << 12;
/// `mm` of two square matrices in bfloat16: bound by the tensor cores.
inline constexpr std::int64_t kProductWidth = 8192;
/// Attention without a mask in bfloat16, flash kernels, forward: of [batch, positions, heads, width].
inline constexpr std::int64_t kAttentionBatch = 2, kAttentionPositions = 8192, kAttentionHeads = 16,
                              kAttentionWidth = 128;

/// Figures that were measured on a GPU. Times are of one operator in a stream that has other work before and
/// after it.
struct GpuMeasurements {
  /// Figures that the driver reports: names, memory, multiprocessors. The others are not set.
  DeviceProfile properties{};
  Nanoseconds small_kernel_ns = 0;  ///< of one kernel of many that do hardly anything, one after the other
  Nanoseconds launch_ns = 0;        ///< from one launch of a small kernel to the next, the stream being idle
  Nanoseconds add_ns = 0, broadcast_ns = 0, product_ns = 0, attention_ns = 0;
  Nanoseconds sustained_product_ns = 0;  ///< of the product after seconds of it, as the power limit allows
  Link link{};                           ///< to pinned memory
};

/// Returns the built-in profile of the GPU: the one of that device name, else the first one with the same
/// compute capability. Throws Error (input) if there is none.
DeviceProfile profile_like(const DeviceProfile& properties);

/// Returns the profile of the measured GPU. Properties are those of the driver; shares of the peaks, times of
/// kernels and the link follow from the measured times by the cost model (kernel_cost.h). Peak rates of
/// dtypes are those of `like`, by multiprocessor and clock. Its memory latency is taken over, as no operator
/// shows it, and so are its elements per cycle, if the memory is too slow for them to show.
DeviceProfile fit_profile(const DeviceProfile& like, const GpuMeasurements& measured,
                          const std::string& name);

/// Returns the text of a profile file. `sources` has a text for each group of figures: `memory`,
/// `multiprocessors`, `flops_per_second`, `efficiency`, `kernels`, `link`.
std::string format_profile(const DeviceProfile& profile, const std::map<std::string, std::string>& sources);

}  // namespace offprof
