#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// A tensor of a recorded call, as far as a trace tells of it.
struct OperandKey {
  std::string_view dtype;  ///< as traces name it; empty: not known
  const std::vector<std::int64_t>& sizes;
};

/// `void f<4>(float*)|512,1,1|128,1,1`: the demangled name, the grid, the block.
std::string kernel_key(std::string_view name, const std::uint32_t (&grid)[3],
                       const std::uint32_t (&block)[3]);

/// `aten::addmm(float32[16],float32[4,8],float32[8,16])`: the operator and the tensors it was called with,
/// those in lists among them. Tensors of no dimension are left out, since a trace writes them like numbers.
/// Without dtypes
/// (`aten::cat([4,8],[4,8])`) if one of them is not known, as of tensors in lists.
std::string op_key(std::string_view name, const std::vector<OperandKey>& operands);

/// Kernel durations read from a trace that PyTorch's profiler recorded on a GPU.
class KernelTimes {
 public:
  KernelTimes() = default;

  bool empty() const { return by_kernel_.empty() && by_op_.empty(); }
  void add_kernel(const std::string& key, Nanoseconds duration);
  void add_op(const std::string& key, Nanoseconds duration);

  /// The median over the launches with that key (see kernel_key and op_key), the lower one of an even number;
  /// nullopt: none was recorded. An operator's time is the sum of its own kernels' durations, those of the
  /// operators that it calls left out.
  std::optional<Nanoseconds> of_kernel(const std::string& key) const;
  std::optional<Nanoseconds> of_op(const std::string& key) const;

 private:
  std::map<std::string, std::vector<Nanoseconds>, std::less<>> by_kernel_;
  std::map<std::string, std::vector<Nanoseconds>, std::less<>> by_op_;
};

/// Reads a Chrome trace (`.json`, `.json.gz`) in the conventions of PyTorch's profiler (Kineto): events of
/// category `kernel` with `grid`, `block` and `External id` (or `correlation` with an event of category
/// `cuda_runtime` or `cuda_driver` that has it) in their `args`, and of category `cpu_op` with `External id`,
/// and, where shapes were recorded, `Input Dims` and `Input type`. The events are the document, or its
/// `traceEvents`: both are Chrome traces. Throws Error (input): no such file, no trace, an event whose
/// duration is none, no kernel, or kernels whose times were simulated.
KernelTimes read_kernel_times(const std::string& path);

/// The same from text; `name` stands for it in errors.
KernelTimes parse_kernel_times(const std::string& text, const std::string& name);

}  // namespace offprof
