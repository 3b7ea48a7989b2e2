#include "cli/commands/diff_command.h"
#include "cli/gate/gate_report.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/baselines.h"
#include "traces/analysis/figures.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

void judge(const StepSummary& base, const StepSummary& now) {
  const GateOptions options{.limits = {}, .allow_different = true};
  const GateReport report{base.source, now.source, check_gate(base, now, options), op_differences(base, now)};
  check_shown(to_text(report, {}));
  check_shown(dump_json(to_json(report)));
}

void show_difference(const StepSummary& base, const StepSummary& now) {
  DiffReport report;
  report.diff = compare(base, now);
  check_shown(to_text(report, {}));
  check_shown(dump_json(to_json(report)));
}

}  // namespace
}  // namespace offprof

/// Fuzzes a trace, a report or a baseline on both sides of `gate` and `diff`, and as the input of `gate
/// --update`.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  static const StepSummary kOther = figures_of(sample_trace(), "other.json");
  const std::string text(as_text(data, size));
  is_baseline(text);
  return read_or_refuse([&] {
    const StepSummary figures = parse_figures(text, "t.json");
    show_difference(kOther, figures);
    show_difference(figures, kOther);
    const std::string baseline = format_baseline(figures, "0.1.0");
    OFFPROF_CHECK(is_baseline(baseline));
    OFFPROF_CHECK(format_baseline(parse_figures(baseline, "b.json"), "0.1.0") == baseline);
    judge(figures, kOther);
    judge(kOther, figures);
  });
}
