#include "tests/fuzz/fuzz.h"
#include "traces/format/trace_io.h"

/// Fuzzes traces. A trace that is parsed and written must be equal when it is parsed and written again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const std::string written = format_trace(parse_trace(std::string(as_text(data, size)), "t.json"));
    OFFPROF_CHECK(format_trace(parse_trace(written, "written.json")) == written);
  });
}
