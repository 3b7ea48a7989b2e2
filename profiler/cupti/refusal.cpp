#include "profiler/cupti/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace offprof {
namespace {

struct Reason {
  CUptiResult result;
  std::string_view why;
  std::string_view advice;
};

constexpr std::array kReasons = {
    Reason{
        CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED, "another tool already traces this process",
        "run it outside of Nsight Systems, Nsight Compute, cuda-gdb and compute-sanitizer, and without other "
        "profilers in the process"},
    Reason{
        CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, "this user has no permission to trace the GPU",
        "ask the administrator to load the NVIDIA driver with NVreg_RestrictProfilingToAdminUsers=0, or run "
        "as root; "
        "in a container, add --cap-add=SYS_ADMIN"},
    Reason{CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
           "the host of this virtual machine does not allow its guests to trace the GPU",
           "enable profiling for this virtual GPU on the host (vGPU parameter enable_profiling=1)"},
    Reason{CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED, "this virtual GPU cannot be traced",
           "use a GPU with full passthrough"},
    Reason{CUPTI_ERROR_NOT_INITIALIZED, "CUPTI does not start, usually because the driver is too old",
           "update the NVIDIA driver to one for CUDA 13 (580 or later); nvidia-smi shows which it is"},
    Reason{CUPTI_ERROR_NOT_COMPATIBLE, "the driver and CUPTI are not compatible",
           "update the NVIDIA driver to one for CUDA 13 (580 or later); nvidia-smi shows which it is"},
    Reason{CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED, "the GPU is in confidential-computing mode",
           "use a GPU with that mode off"},
    Reason{CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED, "this MIG slice of a GPU cannot be traced",
           "use a GPU without MIG, or a MIG slice that no other user shares"},
    Reason{CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED, "GPUs under WSL cannot be traced by this driver",
           "update the Windows driver, or trace on Linux itself"},
    Reason{CUPTI_ERROR_CMP_DEVICE_NOT_SUPPORTED, "a mining processor (CMP) cannot be traced",
           "trace on another GPU"},
    Reason{CUPTI_ERROR_SLI_DEVICE_NOT_SUPPORTED, "GPUs in an SLI group cannot be traced", "turn SLI off"},
    Reason{CUPTI_ERROR_OUT_OF_MEMORY, "there is not enough memory for its buffers",
           "free host memory, or raise the limit on locked memory (ulimit -l)"},
    Reason{CUPTI_ERROR_UNKNOWN, "the NVIDIA driver is missing or does not respond",
           "check whether nvidia-smi shows a GPU"},
};

}  // namespace

Error cupti_refusal(CUptiResult result, std::string_view doing, std::string_view holder) {
  const auto* const reason = std::ranges::find(kReasons, result, &Reason::result);
  const bool is_known = reason != kReasons.end();
  std::string message =
      fmt::format("CUPTI, {}: {} (error {})", doing,
                  is_known ? reason->why : std::string_view("the call failed"), static_cast<int>(result));
  if (!holder.empty()) message += fmt::format("; it is {}", holder);
  return environment_error(message, is_known
                                        ? std::string(reason->advice)
                                        : std::string("look up the number in cupti_result.h of CUDA 13"));
}

}  // namespace offprof
