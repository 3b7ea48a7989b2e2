#include "engine/devices/virtual_gpu/model/kernel_times.h"

#include "tests/fuzz/fuzz.h"

/// Fuzzes a trace of PyTorch's profiler.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse(
      [&] { OFFPROF_CHECK(!parse_kernel_times(std::string(as_text(data, size)), "t.json").of_op("")); });
}
