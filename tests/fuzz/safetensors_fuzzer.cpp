#include "engine/tensors/files/safetensors.h"
#include "tests/fuzz/fuzz.h"

/// Fuzzes safetensors files. In an accepted file, names must be printable text, and each byte after the
/// header must belong to exactly one tensor.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const SafetensorsFile file(std::make_shared<TextFile>(std::string(as_text(data, size)), "m.safetensors"));
    Bytes bytes = 0;
    for (const auto& [name, tensor] : file.tensors()) {
      check_shown(name);
      OFFPROF_CHECK(bytes_of(tensor.dtype, tensor.sizes) == tensor.bytes);
      std::string room(static_cast<std::size_t>(tensor.bytes), '\0');
      file.read(tensor, room);
      bytes += tensor.bytes;
    }
    OFFPROF_CHECK(bytes < static_cast<Bytes>(size));
  });
}
