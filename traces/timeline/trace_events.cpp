#include "traces/timeline/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "traces/timeline/event_lines.h"
#include "traces/timeline/gpu_events.h"

namespace offprof {
namespace {

constexpr TraceRow kComputeRow{1, 1};
constexpr TraceRow kLaunchRow{1, 2};
constexpr TraceRow kLaunchGapRow{1, 3};
constexpr TraceRow kAllocatorRow{1, 4};
constexpr TraceRow kDiskWriteRow{2, 1};
constexpr TraceRow kDiskReadRow{2, 2};
constexpr TraceRow kD2hRow{0, 7};
constexpr TraceRow kH2dRow{0, 8};
/// Rows of copies that no tracer saw. CUPTI's stream numbers begin above them.
constexpr TraceRow kUntracedD2hRow{0, 1};
constexpr TraceRow kUntracedH2dRow{0, 2};

TraceRow row_of(Track track) {
  switch (track) {
    case Track::kCompute:
      return kComputeRow;
    case Track::kLaunchGaps:
      return kLaunchGapRow;
    case Track::kDiskWrite:
      return kDiskWriteRow;
    case Track::kDiskRead:
      return kDiskReadRow;
    case Track::kD2h:
      return kD2hRow;
    case Track::kH2d:
      break;
  }
  return kH2dRow;
}

bool is_of_disk(Track track) {
  return track == Track::kDiskWrite || track == Track::kDiskRead;
}

const char* direction_name(Track track) {
  switch (track) {
    case Track::kD2h:
      return "d2h";
    case Track::kDiskWrite:
      return "write";
    case Track::kDiskRead:
      return "read";
    default:
      return "h2d";
  }
}

/// Returns a name that Holistic Trace Analysis (HTA) recognises: it reads the first 11 letters.
const char* copy_name(Track track) {
  return track == Track::kD2h ? "Memcpy DtoH (Device -> Host)" : "Memcpy HtoD (Host -> Device)";
}

/// Returns the category. Steps, phases and waits are annotations, so that `cpu_op` only contains operators.
const char* category(SpanKind kind) {
  return kind == SpanKind::kOp ? "cpu_op" : "user_annotation";
}

class EventWriter : private EventLines {
 public:
  EventWriter(std::string& out, const Trace& trace)
      : EventLines(out), trace_(trace), is_traced_(!trace.timeline.gpu.empty()) {}

  void write() {
    write_metadata();
    write_spans();
    write_flows();
    write_gpu_events(*this, trace_);
    write_counters();
    write_allocator();
  }

 private:
  void write_metadata() {
    const std::string mark = trace_.simulated ? " (simulated)" : "";
    metadata("process_name", kComputeRow, "name", quoted("offprof" + mark));
    metadata("process_labels", kComputeRow, "labels", quoted(trace_.environment.device_name));
    metadata("process_sort_index", kComputeRow, "sort_index", "0");
    metadata("thread_name", kComputeRow, "name", quoted("compute"));
    const bool has_timed_copies = !is_traced_ || has_spans([](const Span& span) {
      return span.kind == SpanKind::kCopy && !is_of_disk(span.track);
    });
    if (has_timed_copies) metadata("thread_name", kLaunchRow, "name", quoted("copies begin"));
    if (has_spans([](const Span& span) { return span.track == Track::kLaunchGaps; }))
      metadata("thread_name", kLaunchGapRow, "name", quoted("waits for launch"));
    if (has_spans([](const Span& span) { return is_of_disk(span.track); })) write_disk_metadata(mark);
    if (!trace_.timeline.allocator.empty())
      metadata("thread_name", kAllocatorRow, "name", quoted("allocator"));
    metadata("process_name", kD2hRow, "name", quoted((is_traced_ ? "GPU" : "offprof copies") + mark));
    metadata("process_labels", kD2hRow, "labels", quoted(trace_.environment.device));
    metadata("process_sort_index", kD2hRow, "sort_index", "1");
    if (has_timed_copies) {
      metadata("thread_name", row(Track::kD2h), "name", quoted("copies device -> host"));
      metadata("thread_name", row(Track::kH2d), "name", quoted("copies host -> device"));
    }
    write_gpu_rows(*this, trace_.timeline);
  }

  template <typename Predicate>
  bool has_spans(Predicate predicate) const {
    return std::ranges::any_of(trace_.timeline.spans, predicate);
  }

  /// Returns the row of a track. If a GPU was traced, copies that its tracer did not see have rows of their
  /// own.
  TraceRow row(Track track) const {
    if (is_traced_ && track == Track::kD2h) return kUntracedD2hRow;
    if (is_traced_ && track == Track::kH2d) return kUntracedH2dRow;
    return row_of(track);
  }

  /// Returns the spans with parents before children, because viewers nest events with the same start by their
  /// order in the file. Operators with the same start keep their order.
  std::vector<const Span*> sorted_spans() const {
    std::vector<const Span*> spans;
    spans.reserve(trace_.timeline.spans.size());
    for (const Span& span : trace_.timeline.spans) spans.push_back(&span);
    const auto before = [](const Span* a, const Span* b) {
      return a->begin_ns != b->begin_ns ? a->begin_ns < b->begin_ns : a->kind < b->kind;
    };
    std::stable_sort(spans.begin(), spans.end(), before);
    return spans;
  }

  void write_disk_metadata(const std::string& mark) {
    metadata("process_name", kDiskWriteRow, "name", quoted("disk" + mark));
    metadata("process_sort_index", kDiskWriteRow, "sort_index", "2");
    for (const Track track : {Track::kDiskWrite, Track::kDiskRead})
      metadata("thread_name", row_of(track), "name", quoted(disk_transfer_name(track)));
  }

  void write_spans() {
    // Copies that the GPU's tracer did not see get correlation numbers above those of the tracer.
    for (const GpuSpan& span : trace_.timeline.gpu) correlation_ = std::max(correlation_, span.correlation);
    for (const Span* span : sorted_spans()) {
      if (is_of_disk(span->track)) {
        write_disk_transfer(*span);
      } else if (span->kind == SpanKind::kCopy) {
        write_copy(*span);
      } else {
        write_compute(*span);
      }
    }
  }

  void write_compute(const Span& span) {
    begin_complete(row_of(span.track), category(span.kind), quoted(span.name), span.begin_ns,
                   span.duration_ns);
    if (span.kind == SpanKind::kWait) {
      append(",\"args\":{{\"reason\":{}", quoted(span.reason));
      if (span.copy_track) append(",\"direction\":\"{}\"", direction_name(*span.copy_track));
      saved_tensor(trace_.program, span.tensor);
      append("}}");
    } else {
      write_op_arguments(span);
    }
    append("}}");
  }

  void write_op_arguments(const Span& span) {
    const bool is_nested = span.is_nested && span.duration_ns == 0;
    if (is_nested) append(",\"args\":{{\"nested\":true");
    if (span.external_id != 0)
      append("{}\"External id\":{}", is_nested ? "," : ",\"args\":{", span.external_id);
    if (is_nested || span.external_id != 0) append("}}");
  }

  /// Writes a copy and the host event with the same `correlation`. HTA drops copies without one.
  void write_copy(const Span& span) {
    const TraceRow copy_row = row(span.track);
    const char* launch = span.track == Track::kD2h ? "copy out" : "copy in";
    ++correlation_;
    begin_complete(kLaunchRow, "user_annotation", quoted(launch), span.begin_ns, 0);
    append(",\"args\":{{\"correlation\":{}}}}}", correlation_);
    begin_complete(copy_row, "gpu_memcpy", quoted(copy_name(span.track)), span.begin_ns, span.duration_ns);
    append(",\"args\":{{\"device\":{},\"context\":0,\"stream\":{},\"correlation\":{},\"bytes\":{}",
           copy_row.pid, copy_row.tid, correlation_, span.bytes);
    bandwidth(span.bytes, span.duration_ns);
    saved_tensor(trace_.program, span.tensor);
    append("}}}}");
  }

  /// Writes a disk transfer. It is not GPU work, so GPU tools must not count it.
  void write_disk_transfer(const Span& span) {
    begin_complete(row_of(span.track), "disk", quoted(span.name), span.begin_ns, span.duration_ns);
    append(",\"args\":{{\"bytes\":{}", span.bytes);
    bandwidth(span.bytes, span.duration_ns);
    saved_tensor(trace_.program, span.tensor);
    append("}}}}");
  }

  void write_flows() {
    std::map<std::int64_t, std::vector<const FlowPoint*>> chains;
    for (const FlowPoint& point : trace_.timeline.flows) chains[point.flow].push_back(&point);
    for (auto& [flow, points] : chains) {
      std::ranges::stable_sort(points, {}, &FlowPoint::at_ns);
      if (points.size() > 1) write_chain(flow, points);
    }
  }

  void write_chain(std::int64_t flow, const std::vector<const FlowPoint*>& points) {
    for (const FlowPoint* point : points) {
      const char* phase = point == points.front() ? "s" : point == points.back() ? "f" : "t";
      begin(phase, point->stream ? row_of_stream(*point->stream) : row(point->track));
      append(",\"cat\":\"offload\",\"name\":\"offload\",\"id\":{},\"bp\":\"e\"", flow);
      time("ts", point->at_ns);
      append(",\"args\":{{\"point\":{}}}}}", quoted(point->name));
    }
  }

  void write_counters() {
    std::map<std::string, std::int64_t> last;
    for (const CounterSample& sample : trace_.timeline.counters) {
      const auto [entry, is_new] = last.try_emplace(sample.name, sample.value);
      if (!is_new && entry->second == sample.value) continue;
      entry->second = sample.value;
      begin("C", kComputeRow);
      append(",\"name\":{}", quoted(sample.name));
      time("ts", sample.at_ns);
      append(",\"args\":{{\"bytes\":{}}}}}", sample.value);
    }
  }

  /// Writes the allocator's events under the names of PyTorch's profiler, so that its tools can read them.
  /// Device types are those of c10.
  void write_allocator() {
    const bool is_gpu = trace_.environment.device != "host";
    for (const AllocatorEvent& event : trace_.timeline.allocator) {
      begin("i", kAllocatorRow);
      append(",\"s\":\"t\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\"");
      time("ts", event.at_ns);
      append(",\"args\":{{\"Device Type\":{},\"Device Id\":{},\"Addr\":{}", is_gpu ? 1 : 0, is_gpu ? 0 : -1,
             event.allocation);
      append(",\"Bytes\":{},\"Total Allocated\":{},\"Total Reserved\":{},\"stack\":{}}}}}", event.bytes,
             event.allocated_bytes, event.reserved_bytes, quoted(event.stack));
    }
  }

  const Trace& trace_;
  bool is_traced_;
  std::int64_t correlation_ = 0;
};

}  // namespace

void append_trace_events(std::string& out, const Trace& trace) {
  EventWriter(out, trace).write();
}

}  // namespace offprof
