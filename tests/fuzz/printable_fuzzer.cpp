#include "cli/terminal/terminal.h"
#include "tests/fuzz/fuzz.h"

/// Fuzzes names. Printed bytes must be harmless, and stay harmless when they are wrapped or cut.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  const std::string_view text = as_text(data, size);
  const std::string line = printable(text);
  OFFPROF_CHECK(is_printable(line) && printable(line) == line);
  OFFPROF_CHECK(!is_printable(text) || line == text);
  const std::string shown = for_terminal(text);
  OFFPROF_CHECK(for_terminal(shown) == shown);
  constexpr std::size_t kWidth = 12;
  OFFPROF_CHECK(display_width(cut_to_width(line, kWidth)) <= kWidth);
  check_shown(cut_to_width(line, kWidth));
  check_shown(wrap(line, kWidth, 4));
  input_is_accepted = true;  // printable rejects nothing
  return 0;
}
