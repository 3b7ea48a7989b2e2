#include "traces/trace_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <unordered_map>

#include "traces/json_access.h"

namespace offprof {
namespace {

/// A row of the viewers: a process and a thread. Kineto's device rows have the device's and the stream's
/// numbers.
struct Row {
  int pid;
  int tid;
};
constexpr Row kComputeRow{1, 1};
constexpr Row kLaunchRow{1, 2};
constexpr Row kLaunchGapRow{1, 3};
constexpr Row kD2hRow{0, 7};
constexpr Row kH2dRow{0, 8};

Row row_of(Track track) {
  switch (track) {
    case Track::kCompute:
      return kComputeRow;
    case Track::kLaunchGaps:
      return kLaunchGapRow;
    case Track::kD2h:
      return kD2hRow;
    case Track::kH2d:
      break;
  }
  return kH2dRow;
}

/// HTA tells copies by the first 11 letters.
const char* copy_name(Track track) {
  return track == Track::kD2h ? "Memcpy DtoH (Device -> Host)" : "Memcpy HtoD (Host -> Device)";
}

/// Steps, phases and waits are annotations, so that `cpu_op` holds operators alone.
const char* category(SpanKind kind) {
  return kind == SpanKind::kOp ? "cpu_op" : "user_annotation";
}

class EventWriter {
 public:
  EventWriter(std::string& out, const Trace& trace) : out_(out), trace_(trace) {}

  void write() {
    write_metadata();
    write_spans();
    write_flows();
    write_counters();
  }

 private:
  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// Begins an event on its own line; `pid` and `tid` are in it.
  void begin(const char* phase, Row row) {
    append("{}\n{{\"ph\":\"{}\",\"pid\":{},\"tid\":{}", separator_, phase, row.pid, row.tid);
    separator_ = ",";
  }

  /// `"ts":12.345`: microseconds. Times are never negative in a timeline; a sign is kept all the same.
  void time(const char* key, Nanoseconds ns) {
    const std::int64_t us = ns / 1000;
    append(",\"{}\":{}{}.{:03}", key, ns < 0 ? "-" : "", us < 0 ? -us : us,
           ns < 0 ? -(ns % 1000) : ns % 1000);
  }

  /// The name as a JSON string; names repeat, escaping them is slow.
  const std::string& quoted(const std::string& name) {
    const auto found = quoted_.find(name);
    return found != quoted_.end() ? found->second : quoted_.emplace(name, dump_json(name, -1)).first->second;
  }

  void metadata(const char* name, Row row, const char* key, const std::string& value) {
    begin("M", row);
    append(",\"name\":\"{}\",\"args\":{{\"{}\":{}}}}}", name, key, value);
  }

  void write_metadata() {
    const std::string mark = trace_.simulated ? " (simulated)" : "";
    metadata("process_name", kComputeRow, "name", quoted("offprof" + mark));
    metadata("process_labels", kComputeRow, "labels", quoted(trace_.environment.device_name));
    metadata("process_sort_index", kComputeRow, "sort_index", "0");
    metadata("thread_name", kComputeRow, "name", quoted("compute"));
    metadata("thread_name", kLaunchRow, "name", quoted("copies begin"));
    if (std::ranges::any_of(trace_.timeline.spans,
                            [](const Span& span) { return span.track == Track::kLaunchGaps; }))
      metadata("thread_name", kLaunchGapRow, "name", quoted("waits for launch"));
    metadata("process_name", kD2hRow, "name", quoted("offprof copies" + mark));
    metadata("process_labels", kD2hRow, "labels", quoted(trace_.environment.device));
    metadata("process_sort_index", kD2hRow, "sort_index", "1");
    metadata("thread_name", kD2hRow, "name", quoted("copies device -> host"));
    metadata("thread_name", kH2dRow, "name", quoted("copies host -> device"));
  }

  /// Parents before children: viewers nest events of the same begin in the order of the file. Operators that
  /// begin at the same time stay in the order that they have.
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

  void write_spans() {
    for (const Span* span : sorted_spans()) {
      if (span->kind == SpanKind::kCopy) {
        write_copy(*span);
      } else {
        write_compute(*span);
      }
    }
  }

  void complete_event(Row row, const char* cat, const std::string& quoted_name, Nanoseconds begin_ns,
                      Nanoseconds duration_ns) {
    begin("X", row);
    append(",\"cat\":\"{}\",\"name\":{}", cat, quoted_name);
    time("ts", begin_ns);
    time("dur", duration_ns);
  }

  void write_compute(const Span& span) {
    complete_event(row_of(span.track), category(span.kind), quoted(span.name), span.begin_ns,
                   span.duration_ns);
    if (span.kind == SpanKind::kWait) {
      append(",\"args\":{{\"reason\":{}", quoted(span.reason));
      if (span.copy_track) append(",\"direction\":\"{}\"", *span.copy_track == Track::kD2h ? "d2h" : "h2d");
      if (span.tensor >= 0) append(",\"tensor\":{}", span.tensor);
      out_ += '}';
    } else if (span.is_nested && span.duration_ns == 0) {
      out_ += ",\"args\":{\"nested\":true}";
    }
    out_ += '}';
  }

  /// A copy, and on the host's side the event that shares its `correlation`: HTA drops copies without one.
  void write_copy(const Span& span) {
    const Row row = row_of(span.track);
    const char* launch = span.track == Track::kD2h ? "copy out" : "copy in";
    ++correlation_;
    complete_event(kLaunchRow, "user_annotation", quoted(launch), span.begin_ns, 0);
    append(",\"args\":{{\"correlation\":{}}}}}", correlation_);
    complete_event(row, "gpu_memcpy", quoted(copy_name(span.track)), span.begin_ns, span.duration_ns);
    append(",\"args\":{{\"device\":{},\"context\":0,\"stream\":{},\"correlation\":{},\"bytes\":{}", row.pid,
           row.tid, correlation_, span.bytes);
    if (span.duration_ns > 0) {  // bytes a nanosecond are GB a second
      append(",\"memory bandwidth (GB/s)\":{:.3f}",
             static_cast<double>(span.bytes) / static_cast<double>(span.duration_ns));
    }
    if (span.tensor >= 0) append(",\"tensor\":{}", span.tensor);
    out_ += "}}";
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
      begin(phase, row_of(point->track));
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

  std::string& out_;
  const Trace& trace_;
  const char* separator_ = "";
  std::int64_t correlation_ = 0;
  std::unordered_map<std::string, std::string> quoted_;
};

}  // namespace

void append_trace_events(std::string& out, const Trace& trace) {
  EventWriter(out, trace).write();
}

}  // namespace offprof
