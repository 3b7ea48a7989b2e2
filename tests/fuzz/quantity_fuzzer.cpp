#include "cli/options/options.h"
#include "tests/fuzz/fuzz.h"
#include "traces/analysis/gate.h"
#include "traces/base/units.h"

/// Fuzzes quantities on a command line: bytes, times, links, and the limits of a gate.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  const std::string text(as_text(data, size));
  read_or_refuse([&] { check_shown(format_byte_difference(parse_bytes(text))); });
  read_or_refuse([&] { check_shown(format_duration(parse_duration(text))); });
  read_or_refuse([&] { check_shown(format_rate(parse_rate(text))); });
  read_or_refuse([&] { OFFPROF_CHECK(parse_assumed_link(text).d2h.bytes_per_second > 0); });
  read_or_refuse([&] { OFFPROF_CHECK(parse_share(text, "share") >= 0); });
  read_or_refuse([&] { OFFPROF_CHECK(parse_percentage(text, "share", 0.5) <= 0.5); });
  return read_or_refuse([&] {
    const Limit limit = parse_limit(text);
    StepSummary figures{.source = "t.json"};
    figures.metrics.device_peak_bytes = 1 << 20;
    figures.metrics.step_time_ns = 9300;
    check_gate(figures, figures, {.limits = {limit}});
  });
}
