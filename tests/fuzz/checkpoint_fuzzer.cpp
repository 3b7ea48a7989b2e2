#include "engine/tensors/files/checkpoint_pickle.h"
#include "tests/fuzz/fuzz.h"

/// Fuzzes the pickle of a `.pt` file. Names in an accepted file must be printable text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    for (const auto& [name, tensor] : read_checkpoint_pickle(as_text(data, size), "m.pt")) {
      check_shown(name);
      OFFPROF_CHECK(tensor.sizes.size() == tensor.strides.size());
    }
  });
}
