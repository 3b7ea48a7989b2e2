#include "traces/timeline/gpu_events.h"

#include <fmt/format.h>

#include <set>
#include <unordered_map>

namespace offprof {
namespace {

constexpr int kHostProcess = 1;
/// Threads of calls follow the rows of operators, copy starts, waits and the allocator.
constexpr int kFirstCallThread = 5;

TraceRow gpu_row_of(const GpuSpan& span) {
  if (span.kind != GpuSpanKind::kCall) return row_of_stream(span.row);
  return {kHostProcess, kFirstCallThread + static_cast<int>(span.row)};
}

/// Returns the event's category. Driver functions begin with `cu`, runtime functions with `cuda`.
const char* gpu_category(const GpuSpan& span) {
  switch (span.kind) {
    case GpuSpanKind::kKernel:
      return "kernel";
    case GpuSpanKind::kCopy:
      return "gpu_memcpy";
    case GpuSpanKind::kSet:
      return "gpu_memset";
    case GpuSpanKind::kCall:
      break;
  }
  return span.name.starts_with("cuda") ? "cuda_runtime" : "cuda_driver";
}

void write_sizes(EventLines& lines, const char* name, const std::array<std::int32_t, 3>& sizes) {
  lines.append(",\"{}\":[{},{},{}]", name, sizes[0], sizes[1], sizes[2]);
}

void write_span(EventLines& lines, const GpuSpan& span, const StepProgram& program) {
  lines.begin_complete(gpu_row_of(span), gpu_category(span), lines.quoted(span.name), span.begin_ns,
                       span.duration_ns);
  const bool is_call = span.kind == GpuSpanKind::kCall;
  const char* comma = "";
  lines.append(",\"args\":{{");
  if (!is_call) {
    lines.append("\"device\":0,\"context\":1,\"stream\":{}", span.row);
    comma = ",";
  }
  if (span.correlation != 0) {
    lines.append("{}\"correlation\":{}", comma, span.correlation);
    comma = ",";
  }
  if (span.external_id != 0) lines.append("{}\"External id\":{}", comma, span.external_id);
  if (span.kind == GpuSpanKind::kKernel) {
    write_sizes(lines, "grid", span.grid);
    write_sizes(lines, "block", span.block);
  } else if (!is_call) {
    lines.append(",\"bytes\":{}", span.bytes);
    lines.bandwidth(span.bytes, span.duration_ns);
  }
  lines.saved_tensor(program, span.tensor);
  if (span.tensor >= 0) lines.append(",\"lead_ns\":{}", span.lead_ns);
  lines.append("}}}}");
}

void write_arrow(EventLines& lines, const GpuSpan& call, const GpuSpan& work) {
  lines.begin("s", gpu_row_of(call));
  lines.append(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":{}", call.correlation);
  lines.time("ts", call.begin_ns);
  lines.append("}}");
  lines.begin("f", gpu_row_of(work));
  lines.append(",\"cat\":\"ac2g\",\"name\":\"ac2g\",\"id\":{},\"bp\":\"e\"", call.correlation);
  lines.time("ts", work.begin_ns);
  lines.append("}}");
}

}  // namespace

void write_gpu_rows(EventLines& lines, const Timeline& timeline) {
  std::set<std::uint32_t> streams, threads;
  for (const GpuSpan& span : timeline.gpu)
    (span.kind == GpuSpanKind::kCall ? threads : streams).insert(span.row);
  for (const std::uint32_t stream : streams)
    lines.metadata("thread_name", row_of_stream(stream), "name", fmt::format("\"stream {}\"", stream));
  for (const std::uint32_t thread : threads)
    lines.metadata("thread_name", {kHostProcess, kFirstCallThread + static_cast<int>(thread)}, "name",
                   fmt::format("\"CUDA calls, thread {}\"", thread + 1));
}

void write_gpu_events(EventLines& lines, const Trace& trace) {
  const Timeline& timeline = trace.timeline;
  std::unordered_map<std::int64_t, const GpuSpan*> calls;
  for (const GpuSpan& span : timeline.gpu) {
    write_span(lines, span, trace.program);
    if (span.kind == GpuSpanKind::kCall) calls.emplace(span.correlation, &span);
  }
  for (const GpuSpan& span : timeline.gpu) {
    if (span.kind == GpuSpanKind::kCall) continue;
    if (const auto call = calls.find(span.correlation); call != calls.end())
      write_arrow(lines, *call->second, span);
  }
}

}  // namespace offprof
