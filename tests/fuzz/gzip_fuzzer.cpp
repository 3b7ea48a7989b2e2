#include "traces/io/gzip.h"

#include <array>

#include "tests/fuzz/fuzz.h"

/// Largest number of unpacked bytes. More would only take longer; the limit of 64 MiB for a gzip bomb has a
/// test of its own.
constexpr std::size_t kMostUnpacked = std::size_t{1} << 18;

/// Fuzzes a file that begins like a gzip file.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const auto source = decompress_gzip(std::make_unique<TextSource>(as_text(data, size)), "t.json.gz");
    std::array<char, 4096> piece{};
    for (std::size_t bytes = 0; bytes < kMostUnpacked; bytes += piece.size())
      if (source->read(piece) < piece.size()) break;
  });
}
