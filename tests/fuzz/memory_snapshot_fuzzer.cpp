#include "engine/tensors/files/memory_snapshot_file.h"
#include "tests/fuzz/fuzz.h"

/// Fuzzes a memory snapshot. Places in an accepted file must be printable text.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    for (const SnapshotItem& entry : read_memory_snapshot(as_text(data, size), "s.pickle").entries)
      check_shown(entry.place);
  });
}
