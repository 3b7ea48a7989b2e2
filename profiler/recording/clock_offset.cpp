#include "profiler/recording/clock_offset.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "profiler/recording/work_causes.h"

namespace offprof {
namespace {

/// Returns the end of each operator, by the index of its begin event.
std::unordered_map<std::size_t, Nanoseconds> ends_of_ops(const RecordedPass& pass) {
  std::unordered_map<std::size_t, Nanoseconds> ends;
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < pass.events.size(); ++i) {
    const RawEvent& event = pass.events[i];
    if (event.kind == RawKind::kOpBegin) open.push_back(i);
    if (event.kind != RawKind::kOpEnd || open.empty()) continue;
    ends[open.back()] = event.begin_ns;
    open.pop_back();
  }
  return ends;
}

std::uint32_t busiest_stream(const std::vector<const StreamWork*>& work) {
  std::map<std::uint32_t, std::size_t> counts;
  for (const StreamWork* one : work) ++counts[one->stream];
  return std::ranges::max_element(counts, {}, [](const auto& count) { return count.second; })->first;
}

}  // namespace

std::optional<Nanoseconds> offset_to_marks(const RecordedPass& pass, const GpuActivity& activity) {
  const WorkCauses causes(activity);
  std::vector<const StreamWork*> of_ops;
  for (const StreamWork& work : activity.work)
    if (causes.op_of(work.correlation)) of_ops.push_back(&work);
  if (of_ops.empty()) return std::nullopt;
  const std::uint32_t compute = busiest_stream(of_ops);
  const auto ends = ends_of_ops(pass);
  std::optional<Nanoseconds> offset;
  for (const StreamWork* work : of_ops) {
    const auto end = ends.find(*causes.op_of(work->correlation));
    if (work->stream != compute || end == ends.end()) continue;
    const Nanoseconds least = end->second - work->end_ns;
    offset = std::min(offset.value_or(least), least);
  }
  return offset;
}

}  // namespace offprof
