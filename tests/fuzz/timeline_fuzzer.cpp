#include "cli/tables/timeline_diff_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/timeline_diff.h"
#include "traces/timeline/timeline_reader.h"

/// Fuzzes the timeline of a trace, which is compared with another one and with itself.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  static const Timeline kOther = sample_trace().timeline;
  return read_or_refuse([&] {
    TextSource source(as_text(data, size));
    const auto timeline = parse_timeline(source, "t.json");
    if (!timeline) return;
    for (const auto& diff : {compare(*timeline, kOther), compare(kOther, *timeline)}) {
      if (!diff) continue;
      check_shown(to_text(*diff, 10, {}));
      check_shown(to_json(*diff).dump());
    }
    const auto same = compare(*timeline, *timeline);
    OFFPROF_CHECK(!same || (same->ops.empty() && same->places.empty()));
  });
}
