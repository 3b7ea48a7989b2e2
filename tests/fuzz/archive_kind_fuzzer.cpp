#include "engine/archive_kind.h"

#include "engine/input_spec.h"
#include "tests/fuzz/fuzz.h"

/// What is said of a model's file before LibTorch reads it: its first bytes, and the names of its records.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  const std::string_view text = as_text(data, size);
  check_shown(what_archive_is(split_input_specs(text)));  // a name on each line
  return read_or_refuse([&] {
    const std::string_view head = text.substr(0, 4);
    check_zip_head(head, "m.pt");
    OFFPROF_CHECK(head.starts_with("PK"));
  });
}
