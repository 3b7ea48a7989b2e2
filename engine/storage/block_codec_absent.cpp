#include "engine/storage/block_codec.h"

#include "traces/base/error.h"

namespace offprof {
namespace {

[[noreturn]] void refuse() {
  throw environment_error("this build cannot compress: it was built without blosc",
                          "Install blosc (Debian: libblosc-dev) and rebuild, or give a folder: --disk DIR");
}

}  // namespace

bool has_block_codec() noexcept {
  return false;
}

std::string block_codec() {
  refuse();
}

Bytes compress_block(std::span<const std::byte>, int, std::span<std::byte>) {
  refuse();
}

void decompress_block(std::span<const std::byte>, std::span<std::byte>) {
  refuse();
}

}  // namespace offprof
