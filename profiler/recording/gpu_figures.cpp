#include "profiler/recording/gpu_figures.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "profiler/recording/clock_offset.h"

namespace offprof {
namespace {

bool is_on_host(GpuMemoryKind kind) {
  return kind == GpuMemoryKind::kPageable || kind == GpuMemoryKind::kPinned;
}

enum class Does { kCompute, kCopyOut, kCopyIn, kNothing };

Does task_of(const StreamWork& work) {
  if (work.kind != StreamWorkKind::kCopy) return Does::kCompute;
  if (is_on_host(work.from)) return is_on_host(work.to) ? Does::kNothing : Does::kCopyIn;
  return is_on_host(work.to) ? Does::kCopyOut : Does::kCompute;
}

/// Returns the times within the step at which the GPU did that kind of work.
TimeSet times_of(const GpuActivity& activity, Does does, const Interval& step) {
  std::vector<Interval> times;
  for (const StreamWork& work : activity.work) {
    const Interval within = {std::max(work.begin_ns, step.begin_ns), std::min(work.end_ns, step.end_ns)};
    if (task_of(work) == does && within.begin_ns < within.end_ns) times.push_back(within);
  }
  return united(std::move(times));
}

/// Sum of the copies that began in the step: their bytes, and the time in which any of them ran.
struct Copied {
  Bytes bytes = 0;
  Nanoseconds time_ns = 0;
};

Copied copied_by(const GpuActivity& activity, Does does, const Interval& step, Bytes least_bytes) {
  Bytes bytes = 0;
  std::vector<Interval> times;
  for (const StreamWork& work : activity.work) {
    const bool begins_here = step.begin_ns <= work.begin_ns && work.begin_ns < step.end_ns;
    if (!begins_here || task_of(work) != does || work.bytes < least_bytes) continue;
    bytes += work.bytes;
    times.push_back({work.begin_ns, work.end_ns});
  }
  return {bytes, length_of(united(std::move(times)))};
}

LinkFigures link_figures(const GpuActivity& activity, Does does, const Interval& step, const TimeSet& busy) {
  const Copied all = copied_by(activity, does, step, 0);
  const Copied large = copied_by(activity, does, step, kLargeCopy);
  return {length_of(busy), all.bytes, all.time_ns, large.bytes, large.time_ns};
}

}  // namespace

GpuFigures figures_of(const GpuActivity& activity, const Interval& step) {
  GpuFigures figures;
  if (step.end_ns <= step.begin_ns) return figures;
  const TimeSet compute = times_of(activity, Does::kCompute, step);
  const TimeSet out = times_of(activity, Does::kCopyOut, step);
  const TimeSet in = times_of(activity, Does::kCopyIn, step);
  TimeSet copies = out;
  std::ranges::copy(in, std::back_inserter(copies));
  figures.compute_ns = length_of(compute);
  figures.exposed_ns = length_of(without(united(std::move(copies)), compute));
  figures.idle_ns = step.end_ns - step.begin_ns - figures.compute_ns - figures.exposed_ns;
  figures.d2h = link_figures(activity, Does::kCopyOut, step, out);
  figures.h2d = link_figures(activity, Does::kCopyIn, step, in);
  return figures;
}

std::optional<GpuFigures> gpu_figures_of(const StepResult& step) {
  const auto offset = offset_to_marks(step.recording, step.gpu);
  if (!offset) return std::nullopt;
  return figures_of(step.gpu, {step.recording.begin_ns - *offset, step.recording.end_ns - *offset});
}

}  // namespace offprof
