#pragma once

#include <fmt/format.h>

#include <iterator>
#include <string>
#include <unordered_map>
#include <utility>

#include "traces/json_access.h"
#include "traces/units.h"

namespace offprof {

/// A row of the viewers: a process and a thread. Kineto's device rows have the device's and the stream's
/// numbers.
struct TraceRow {
  int pid = 0;
  int tid = 0;
};

/// Writes the elements of `traceEvents`, one a line.
class EventLines {
 public:
  explicit EventLines(std::string& out) : out_(out) {}

  template <typename... Args>
  void append(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }

  /// Begins an event on its own line; `pid` and `tid` are in it.
  void begin(const char* phase, TraceRow row) {
    append("{}\n{{\"ph\":\"{}\",\"pid\":{},\"tid\":{}", separator_, phase, row.pid, row.tid);
    separator_ = ",";
  }

  /// `"ts":12.345`: microseconds. Times are rarely negative in a timeline; a sign is kept all the same.
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

  void metadata(const char* name, TraceRow row, const char* key, const std::string& value) {
    begin("M", row);
    append(",\"name\":\"{}\",\"args\":{{\"{}\":{}}}}}", name, key, value);
  }

  /// A complete event up to its `args`; the caller closes it.
  void begin_complete(TraceRow row, const char* cat, const std::string& quoted_name, Nanoseconds begin_ns,
                      Nanoseconds duration_ns) {
    begin("X", row);
    append(",\"cat\":\"{}\",\"name\":{}", cat, quoted_name);
    time("ts", begin_ns);
    time("dur", duration_ns);
  }

  /// As an argument of a copy: bytes a nanosecond are GB a second.
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
