#include "tests/fuzz/fuzz.h"
#include "traces/trace_io.h"

/// A trace that is read and written says the same when it is read again.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const std::string written = format_trace(parse_trace(std::string(as_text(data, size)), "t.json"));
    OFFPROF_CHECK(format_trace(parse_trace(written, "written.json")) == written);
  });
}
