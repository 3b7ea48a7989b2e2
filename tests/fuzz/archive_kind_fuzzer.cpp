#include "engine/models/inputs/archive_kind.h"

#include "engine/models/inputs/input_spec.h"
#include "tests/fuzz/fuzz.h"

/// Fuzzes the checks of a model file that run before LibTorch reads it: its first bytes and its record names.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  const std::string_view text = as_text(data, size);
  check_shown(what_archive_is(split_input_specs(text)));  // one name per line
  return read_or_refuse([&] {
    const std::string_view head = text.substr(0, 4);
    check_zip_head(head, "m.pt");
    OFFPROF_CHECK(head.starts_with("PK"));
  });
}
