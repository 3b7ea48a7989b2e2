#pragma once

#include <fmt/compile.h>
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "traces/base/units.h"
#include "traces/io/json_access.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Row of the trace viewers: a process and a thread. In Kineto's device rows these are the numbers of the
/// device and of the stream.
struct TraceRow {
  int pid = 0;
  int tid = 0;
};

/// Writes the elements of `traceEvents`, one per line. Formats of the parts that most events have are
/// compiled.
class EventLines {
 public:
  explicit EventLines(std::string& out) : out_(out) {}

  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// Begins an event on a new line and writes its phase, `pid` and `tid`.
  void begin(const char* phase, TraceRow row) {
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE("{}\n{{\"ph\":\"{}\",\"pid\":{},\"tid\":{}"),
                   separator_, phase, row.pid, row.tid);
    separator_ = ",";
  }

  /// Writes a time in microseconds: `"ts":12.345`. Negative times are rare in a timeline, but the sign is
  /// kept.
  void time(const char* key, Nanoseconds ns) {
    const std::int64_t us = ns / 1000;
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE(",\"{}\":{}{}.{:03}"), key, ns < 0 ? "-" : "",
                   us < 0 ? -us : us, ns < 0 ? -(ns % 1000) : ns % 1000);
  }

  /// Returns the name as a JSON string. The result is cached because names repeat and escaping is slow.
  const std::string& quoted(const std::string& name) {
    const auto found = quoted_.find(name);
    return found != quoted_.end() ? found->second : quoted_.emplace(name, dump_json(name, -1)).first->second;
  }

  void metadata(const char* name, TraceRow row, const char* key, const std::string& value) {
    begin("M", row);
    append(",\"name\":\"{}\",\"args\":{{\"{}\":{}}}}}", name, key, value);
  }

  /// Writes a complete event up to its `args`; the caller closes it.
  void begin_complete(TraceRow row, const char* cat, const std::string& quoted_name, Nanoseconds begin_ns,
                      Nanoseconds duration_ns) {
    begin("X", row);
    fmt::format_to(std::back_inserter(out_), FMT_COMPILE(",\"cat\":\"{}\",\"name\":{}"), cat, quoted_name);
    time("ts", begin_ns);
    time("dur", duration_ns);
  }

  /// Writes the arguments of an event that concerns a saved tensor: its number, and the operator, the module
  /// and the source line that saved it, as far as `program` has them. Writes nothing if `tensor` is -1.
  void saved_tensor(const StepProgram& program, std::int64_t tensor) {
    if (tensor < 0) return;
    append(",\"tensor\":{}", tensor);
    if (tensor >= std::ssize(program.saved)) return;
    const SavedTensor& saved = program.saved[static_cast<std::size_t>(tensor)];
    append(",\"op\":{}", quoted(program.names[saved.op]));
    if (saved.module >= 0) append(",\"module\":{}", quoted(program.names[saved.module]));
    if (saved.line >= 0) append(",\"line\":{}", quoted(program.names[saved.line]));
  }

  /// Writes the bandwidth as an argument of a copy. Bytes per nanosecond equal GB per second.
  void bandwidth(Bytes bytes, Nanoseconds duration_ns) {
    if (duration_ns > 0)
      append(",\"memory bandwidth (GB/s)\":{:.3f}",
             static_cast<double>(bytes) / static_cast<double>(duration_ns));
  }

 private:
  std::string& out_;
  const char* separator_ = "";
  std::unordered_map<std::string, std::string> quoted_;
};

}  // namespace offprof
