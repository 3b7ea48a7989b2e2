#include "traces/gzip.h"

#include <array>

#include "tests/fuzz/fuzz.h"

/// A file that says that it is gzip's.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const auto source = unpack_gzip(std::make_unique<TextSource>(as_text(data, size)), "t.json.gz");
    std::array<char, 4096> piece{};
    while (source->read(piece) == piece.size()) {
    }
  });
}
