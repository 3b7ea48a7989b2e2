// Calls a fuzz target with each file of the folders that are named: what libFuzzer's main does with files,
// where there is no libFuzzer.
#include <cstdio>
#include <filesystem>

#include "tests/fuzz/fuzz.h"

namespace {

/// As it lies on the disk, whether it is gzip or not.
std::string bytes_of(const std::filesystem::path& path) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  OFFPROF_CHECK(file != nullptr);
  std::string bytes(std::filesystem::file_size(path), '\0');
  OFFPROF_CHECK(std::fread(bytes.data(), 1, bytes.size(), file) == bytes.size());
  std::fclose(file);
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      const std::string bytes = bytes_of(entry.path());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++count;
    }
  }
  std::printf("%zu inputs\n", count);
  return count > 0 ? 0 : 1;
}
