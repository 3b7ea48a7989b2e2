#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Parameter of a kernel.
struct KernelParameter {
  Bytes bytes = 0;
  bool points_to_global = false;  ///< declared as a pointer to global memory

  bool operator==(const KernelParameter&) const = default;
};

/// Parameters of the kernels of a module, by the name of the kernel, in their order.
using KernelParameters = std::map<std::string, std::vector<KernelParameter>, std::less<>>;

/// Returns the parameters of the kernels in a cubin, an ELF file of NVIDIA's. They are in its sections
/// `.nv.info.KERNEL`, whose layout `cuobjdump -elf` shows: attributes EIATTR_KPARAM_INFO. Empty if the image
/// is something else, such as PTX. Leaves out kernels whose section cannot be read.
KernelParameters kernel_parameters(std::span<const std::byte> image);

/// Returns the same for an image in memory whose size is not known. `image` may be null.
KernelParameters kernel_parameters_at(const void* image);

}  // namespace offprof
