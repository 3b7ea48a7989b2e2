#include "traces/timeline/timeline_reader.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "traces/base/error.h"
#include "traces/io/json_parser.h"
#include "traces/model/trace.h"

namespace offprof {
namespace {

/// Members of an event that a span needs, as they are in the file.
struct RawEvent {
  std::string phase;
  std::string category;
  std::string name;
  std::optional<double> begin_us{};
  std::optional<double> duration_us{};
  double bytes = 0;
  double tensor = -1;
  double lead_ns = 0;
  std::string reason;
  std::string direction;
  bool has_reason = false;
  bool is_nested = false;
  bool has_correlation = false;
};

/// Builds spans from the events of the top-level `traceEvents`; skips everything else.
class TimelineBuilder final : public JsonHandler {
 public:
  explicit TimelineBuilder(const std::string& name) : file_(name) {}

  bool is_trace() const { return schema_ == kTraceSchema; }
  Timeline take() { return std::move(timeline_); }

  void null() override {}
  void boolean(bool value) override {
    if (reads() && depth_ > kEventDepth && key_ == "nested") event_.is_nested = value;
  }
  void negative(std::int64_t value) override { number(static_cast<double>(value)); }
  void natural(std::uint64_t value) override { number(static_cast<double>(value)); }
  void real(double value) override { number(value); }
  void string(std::string_view text) override;

  void key(std::string_view name) override {
    if (depth_ == 1) in_events_ = name == "traceEvents";
    if (depth_ == kEventDepth) in_args_ = name == "args";
    if (depth_ == 1 || reads()) key_ = name;
  }
  void begin_object() override {
    if (++depth_ == kEventDepth) event_ = {};
  }
  void end_object() override {
    if (depth_-- == kEventDepth && in_events_) add_event();
  }
  void begin_array() override { ++depth_; }
  void end_array() override { --depth_; }

 private:
  static constexpr int kEventDepth = 3;  ///< the document, the array, the event

  /// Returns true if the current values belong to an event or to its `args`.
  bool reads() const {
    return in_events_ && (depth_ == kEventDepth || (depth_ == kEventDepth + 1 && in_args_));
  }
  void number(double value);
  void add_event();
  void add(SpanKind kind, Track track, std::string name);
  void add_lead(Span& copy);
  /// Checks that sums stay far below 64 bits, so that code that adds up some of them cannot overflow.
  void add_up(std::int64_t& sum, std::int64_t value, const char* too_much) const {
    constexpr std::int64_t kMostSum = std::int64_t{1} << 60;
    if (value > kMostSum - sum) fail(too_much);
    sum += value;
  }
  void add_time(Nanoseconds duration) {
    add_up(total_ns_, duration, "the total time of the events is too large");
  }
  std::optional<Track> copy_track_of(const std::string& wait) const;
  Nanoseconds to_ns(const std::optional<double>& us, const char* key) const;
  [[noreturn]] void fail(const std::string& what) const {
    throw input_error(fmt::format("{}: traceEvents[{}]: {}", file_, index_, what), "Record the trace again.");
  }

  const std::string& file_;
  std::string schema_;
  Timeline timeline_;
  RawEvent event_;
  std::int64_t total_ns_ = 0, total_bytes_ = 0;
  std::size_t index_ = 0;  ///< index of the current event
  int depth_ = 0;
  bool in_events_ = false;
  bool in_args_ = false;
  std::string key_;
};

void TimelineBuilder::string(std::string_view text) {
  if (depth_ == 1 && key_ == "schema") schema_ = text;
  if (!reads()) return;
  if (depth_ > kEventDepth) {
    if (key_ == "direction") event_.direction = text;
    if (key_ != "reason") return;
    event_.reason = text;
    event_.has_reason = true;
  } else if (key_ == "ph") {
    event_.phase = text;
  } else if (key_ == "cat") {
    event_.category = text;
  } else if (key_ == "name") {
    event_.name = text;
  }
}

void TimelineBuilder::number(double value) {
  if (!reads()) return;
  if (depth_ == kEventDepth && key_ == "ts") event_.begin_us = value;
  if (depth_ == kEventDepth && key_ == "dur") event_.duration_us = value;
  if (depth_ == kEventDepth) return;
  if (key_ == "bytes") event_.bytes = value;
  if (key_ == "tensor") event_.tensor = value;
  if (key_ == "lead_ns") event_.lead_ns = value;
  if (key_ == "correlation") event_.has_correlation = true;
}

/// Adds a span for the event. Rows are recognised by their content, so a file may number its processes and
/// threads freely.
void TimelineBuilder::add_event() {
  const bool is_span = event_.phase == "X";
  if (is_span && event_.category == "cpu_op") {
    add(SpanKind::kOp, Track::kCompute, std::move(event_.name));
  } else if (is_span && event_.category == "gpu_memcpy" && event_.tensor >= 0) {  // otherwise the model's own
    const bool is_out = event_.name.starts_with("Memcpy DtoH");
    add(SpanKind::kCopy, is_out ? Track::kD2h : Track::kH2d, is_out ? "copy out" : "copy in");
    add_lead(timeline_.spans.back());
  } else if (is_span && event_.category == "disk") {
    const Track track =
        event_.name == disk_transfer_name(Track::kDiskWrite) ? Track::kDiskWrite : Track::kDiskRead;
    add(SpanKind::kCopy, track, disk_transfer_name(track));
  } else if (is_span && event_.category == "user_annotation" && !event_.has_correlation) {
    const SpanKind kind = event_.name.starts_with("ProfilerStep#") ? SpanKind::kStep
                          : event_.has_reason                      ? SpanKind::kWait
                                                                   : SpanKind::kPhase;
    const bool for_launch = kind == SpanKind::kWait && event_.name == kWaitForLaunch;
    add(kind, for_launch ? Track::kLaunchGaps : Track::kCompute, std::move(event_.name));
  }
  ++index_;
}

void TimelineBuilder::add(SpanKind kind, Track track, std::string name) {
  constexpr double kMost = 9e15;  // whole numbers up to this are exact in a double
  if (!(event_.bytes >= 0 && event_.bytes <= kMost)) fail("its bytes are out of range");
  if (!(event_.tensor >= -1 && event_.tensor <= kMost)) fail("its tensor is out of range");
  const auto copy_track = kind == SpanKind::kWait ? copy_track_of(name) : std::nullopt;
  add_time(to_ns(event_.duration_us, "dur"));
  add_up(total_bytes_, static_cast<Bytes>(event_.bytes), "the total bytes of the events are too large");
  timeline_.spans.push_back({track, kind, std::move(name), to_ns(event_.begin_us, "ts"),
                             to_ns(event_.duration_us, "dur"), static_cast<Bytes>(event_.bytes),
                             static_cast<std::int64_t>(event_.tensor), std::move(event_.reason), copy_track,
                             event_.is_nested});
}

/// Moves the start of a traced copy to the time at which its stream reached the copy. Other copies, and all
/// figures, count from that time.
void TimelineBuilder::add_lead(Span& copy) {
  if (!(event_.lead_ns >= 0 && event_.lead_ns <= static_cast<double>(copy.begin_ns)))
    fail("its lead_ns is out of range");
  const auto lead = static_cast<Nanoseconds>(event_.lead_ns);
  add_time(lead);
  copy.begin_ns -= lead;
  copy.duration_ns += lead;
}

/// Returns the direction of the copy that a wait is for. Earlier files only have it in the name, and not for
/// every wait.
std::optional<Track> TimelineBuilder::copy_track_of(const std::string& wait) const {
  if (event_.direction == "d2h" || wait == kWaitForCopyOut) return Track::kD2h;
  if (event_.direction == "h2d" || wait == kWaitForCopyIn) return Track::kH2d;
  if (event_.direction == "write") return Track::kDiskWrite;
  if (event_.direction == "read") return Track::kDiskRead;
  return std::nullopt;
}

/// Converts microseconds to nanoseconds. Three decimals are exact up to a hundred days.
Nanoseconds TimelineBuilder::to_ns(const std::optional<double>& us, const char* key) const {
  constexpr double kMost = 9e12;
  if (!us) fail(fmt::format("'{}' is missing or not a number", key));
  if (!(*us >= 0 && *us <= kMost)) fail(fmt::format("{}: {} is not between 0 and {}", key, *us, kMost));
  return std::llround(*us * 1000);
}

}  // namespace

std::optional<Timeline> read_timeline(const std::string& path) {
  return parse_timeline(*open_file(path), path);
}

std::optional<Timeline> parse_timeline(ByteSource& source, const std::string& name) {
  TimelineBuilder builder(name);
  parse_json(source, builder, name);
  if (!builder.is_trace()) return std::nullopt;
  return builder.take();
}

}  // namespace offprof
