#include "simulator/allocator/allocator_settings.h"

#include "tests/fuzz/fuzz.h"

/// Fuzzes PYTORCH_CUDA_ALLOC_CONF, and the sizes of blocks and segments under its settings.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const AllocatorSettings settings = parse_allocator_settings(std::string(as_text(data, size)));
    for (const Bytes requested : {Bytes{1}, Bytes{1000}, 3 * kMiB, 5 * kGiB + 1, kGiB * kGiB / 4}) {
      const Bytes rounded = settings.rounded(requested);
      OFFPROF_CHECK(rounded >= requested && settings.segment_bytes(rounded) >= rounded);
    }
  });
}
