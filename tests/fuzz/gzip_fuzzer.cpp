#include "traces/gzip.h"

#include <array>

#include "tests/fuzz/fuzz.h"

/// So much of it is unpacked: more only takes longer, and what a bomb meets after 64 MiB has a test of its
/// own.
constexpr std::size_t kMostUnpacked = std::size_t{1} << 18;

/// A file that says that it is gzip's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const auto source = unpack_gzip(std::make_unique<TextSource>(as_text(data, size)), "t.json.gz");
    std::array<char, 4096> piece{};
    for (std::size_t bytes = 0; bytes < kMostUnpacked; bytes += piece.size())
      if (source->read(piece) < piece.size()) break;
  });
}
