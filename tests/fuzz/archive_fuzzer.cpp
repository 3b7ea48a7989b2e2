#include "engine/tensors/files/tensor_archive.h"

#include <string>

#include "tests/fuzz/fuzz.h"

/// Fuzzes the reader of `.pt` archives: the directory of the zip file and the pickle in it. The tensors of an
/// accepted file must be inside the file, and their names printable text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const TensorArchive archive(std::make_shared<TextFile>(std::string(as_text(data, size)), "m.pt"),
                                TensorArchive::Accepts::kModulesToo);
    for (const auto& [name, entry] : archive.tensors()) {
      check_shown(name);
      OFFPROF_CHECK(entry.offset >= 0 && entry.span >= 0);
      OFFPROF_CHECK(entry.offset + entry.span <= static_cast<Bytes>(size));
    }
  });
}
