#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// A tensor of a recorded call, as far as a trace describes it.
struct OperandKey {
  std::string_view dtype;  ///< named as in traces; empty: not known
  const std::vector<std::int64_t>& sizes;
};

/// Returns `void f<4>(float*)|512,1,1|128,1,1`: the demangled name, the grid, the block.
std::string kernel_key(std::string_view name, const std::uint32_t (&grid)[3],
                       const std::uint32_t (&block)[3]);

/// Returns `aten::addmm(float32[16],float32[4,8],float32[8,16])`: the operator and its tensors, including
/// those in lists. Tensors without dimensions are left out, since a trace writes them like numbers. If the
/// dtype of a tensor is not known, as in lists, the key has no dtypes: `aten::cat([4,8],[4,8])`.
std::string op_key(std::string_view name, const std::vector<OperandKey>& operands);

/// Kernel durations read from a trace that PyTorch's profiler recorded on a GPU.
class KernelTimes {
 public:
  KernelTimes() = default;

  bool empty() const { return by_kernel_.empty() && by_op_.empty(); }
  void add_kernel(const std::string& key, Nanoseconds duration);
  void add_op(const std::string& key, Nanoseconds duration);

  /// Returns the median over the launches with that key (see kernel_key and op_key), the lower one of an even
  /// number; nullopt: none was recorded. An operator's time is the sum of its own kernels' durations, without
  /// those of the operators that it calls.
  std::optional<Nanoseconds> of_kernel(const std::string& key) const;
  std::optional<Nanoseconds> of_op(const std::string& key) const;

 private:
  std::map<std::string, std::vector<Nanoseconds>, std::less<>> by_kernel_;
  std::map<std::string, std::vector<Nanoseconds>, std::less<>> by_op_;
};

/// Reads a Chrome trace (`.json`, `.json.gz`) in the conventions of PyTorch's profiler (Kineto). It uses
/// events of category `kernel` with `grid`, `block` and `External id` in their `args` (or `correlation`, with
/// an event of category `cuda_runtime` or `cuda_driver` that has the external id), and of category `cpu_op`
/// with `External id` and, if shapes were recorded, `Input Dims` and `Input type`. The events are the
/// document itself or its `traceEvents`: both are Chrome traces. Throws Error (input) if the file is missing
/// or is no trace, if an event's duration is invalid, if there is no kernel, or if the kernel times were
/// simulated.
KernelTimes read_kernel_times(const std::string& path);

/// Reads the same from text; `name` stands for it in errors.
KernelTimes parse_kernel_times(const std::string& text, const std::string& name);

}  // namespace offprof
