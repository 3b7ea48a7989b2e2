#include "profiler/program_times.h"

#include <algorithm>
#include <cmath>

namespace offprof {
namespace {

/// Packs, unpacks and releases: each costs a hook.
std::int64_t hooks_in(const Program& program) {
  return std::ranges::count_if(program.events, [](const Event& event) {
    return event.kind == EventKind::kPack || event.kind == EventKind::kUnpack ||
           event.kind == EventKind::kRelease;
  });
}

}  // namespace

void scale_compute(Program& program, double factor) {
  double exact = 0;
  Nanoseconds given = 0;
  for (Event& event : program.events) {
    exact += factor * static_cast<double>(event.compute_ns);
    event.compute_ns = std::llround(exact) - given;
    given += event.compute_ns;
  }
}

double fit_to_step(Program& program, const Calibration& calibration) {
  Nanoseconds recorded = 0;
  for (const Event& event : program.events) recorded += event.compute_ns;
  const Nanoseconds wanted = calibration.step.median_ns - hooks_in(program) * calibration.hook.median_ns;
  if (recorded <= 0 || wanted <= 0) return 1;
  const double factor = static_cast<double>(wanted) / static_cast<double>(recorded);
  scale_compute(program, factor);
  return factor;
}

}  // namespace offprof
