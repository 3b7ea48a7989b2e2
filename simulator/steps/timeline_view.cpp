#include <algorithm>
#include <utility>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"

namespace offprof {
namespace {

const char* stall_name(const Stall& stall) {
  if (!stall.copy_track) return kWaitForLaunch;
  if (stall.reason == StallReason::kDisk) return kWaitForDisk;
  return stall.reason == StallReason::kLink ? kWaitForLink : wait_name(*stall.copy_track);
}

/// Builds the timeline while the step is replayed. Step leaves operators out. They are restored by a walk
/// over the step program's own events between the replayed ones.
class TimelineListener final : public ReplayListener {
 public:
  TimelineListener(const StepProgram& program, const Step& step) : program_(program), step_(step) {}

  void on_event_begin(std::size_t index, Nanoseconds now) override {
    walk_to(static_cast<std::size_t>(step_.program_index()[index]), now);
  }

  void on_event(std::size_t index, Nanoseconds now) override {
    const Event& event = step_.events()[index];
    if (event.kind == EventKind::kUnpack) add_unpack(event.id, now);
    ++walked_;
    program_clock_ = now;
  }

  void on_placement(SavedId tensor, const PackDecision& decision) override {
    copy_of_.resize(std::max(copy_of_.size(), static_cast<std::size_t>(tensor) + 1), -1);
    copy_of_[tensor] = decision.copy;
  }

  void on_copy(const CopyCommand& command, const VirtualClock::Copy& copy) override {
    const bool out = copy.track == Track::kD2h;
    Span& span = add_span(SpanKind::kCopy, out ? "copy out" : "copy in", copy.begin, copy.end);
    span.track = copy.track;
    span.bytes = command.bytes;
    span.tensor = command.tensor;
    timeline_.flows.push_back({command.copy, copy.track, copy.begin, span.name});
  }

  void on_parameter_copy(const VirtualClock::Copy& copy) override {
    const bool is_on_disk = copy.track == Track::kDiskWrite || copy.track == Track::kDiskRead;
    const std::string name = is_on_disk                  ? disk_transfer_name(copy.track)
                             : copy.track == Track::kD2h ? "parameters out"
                                                         : "parameters in";
    Span& span = add_span(SpanKind::kCopy, name, copy.begin, copy.end);
    span.track = copy.track;
    span.bytes = copy.bytes;
  }

  void on_disk_transfer(const CopyCommand& command, const VirtualClock::Copy& transfer) override {
    Span& span = add_span(SpanKind::kCopy, disk_transfer_name(transfer.track), transfer.begin, transfer.end);
    span.track = transfer.track;
    span.bytes = command.bytes;
    span.tensor = command.tensor;
  }

  void on_command(const Command& command, Nanoseconds now) override {
    if (const auto* const out = std::get_if<CopyOut>(&command))
      timeline_.flows.push_back({out->copy, Track::kCompute, now, "pack"});
    if (const auto* const taken = std::get_if<TakeDisk>(&command)) count_disk(taken->bytes, now);
    if (const auto* const freed = std::get_if<FreeDisk>(&command)) count_disk(-freed->bytes, now);
  }

  void on_stall(const Stall& stall) override {
    Span& span =
        add_span(SpanKind::kWait, stall_name(stall), stall.begin_ns, stall.begin_ns + stall.duration_ns);
    if (stall.reason == StallReason::kLaunch) span.track = Track::kLaunchGaps;
    span.copy_track = stall.copy_track;
    span.tensor = stall.tensor;
    span.bytes = stall.bytes;
    span.reason = describe(stall.reason);
  }

  void on_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds now) override {
    count_memory(device_bytes, host_bytes, now);
  }

  Timeline finish(Nanoseconds step_time) {
    walk_to(program_.events.size(), step_time);
    end_phase(step_time);
    add_span(SpanKind::kStep, "ProfilerStep#0", 0, step_time);
    return std::move(timeline_);
  }

 private:
  Span& add_span(SpanKind kind, const std::string& name, Nanoseconds begin, Nanoseconds end) {
    Span& span = timeline_.spans.emplace_back();
    span.kind = kind;
    span.name = name;
    span.begin_ns = begin;
    span.duration_ns = end - begin;
    return span;
  }

  void count_disk(Bytes change, Nanoseconds now) {
    disk_bytes_ += change;
    timeline_.counters.push_back({"disk_bytes", now, disk_bytes_});
  }

  /// Passes the operators and phases before program event `end`, which the replay reaches at `now`. The time
  /// since the last event is divided among them in proportion to their compute times, because slowdown by
  /// copies and work on a device beside the host are known only in total.
  void walk_to(std::size_t end, Nanoseconds now) {
    Nanoseconds recorded = 0;
    for (std::size_t i = walked_; i < std::min(end + 1, program_.events.size()); ++i)
      recorded += program_.events[i].compute_ns;
    const Nanoseconds begin = program_clock_;
    const double pace = recorded > 0 ? static_cast<double>(now - begin) / static_cast<double>(recorded) : 0;
    Nanoseconds passed = 0;
    for (; walked_ < end; ++walked_) {
      const Event& event = program_.events[walked_];
      passed += event.compute_ns;
      program_clock_ = begin + static_cast<Nanoseconds>(pace * static_cast<double>(passed));
      if (event.kind == EventKind::kOpBegin) open_ops_.emplace_back(event.id, program_clock_);
      if (event.kind == EventKind::kOpEnd) end_op();
      if (event.kind == EventKind::kPhase) begin_phase(event.id);
    }
  }

  void end_op() {
    if (open_ops_.empty()) return;
    const auto [name, begin] = open_ops_.back();
    open_ops_.pop_back();
    add_span(SpanKind::kOp, program_.names[name], begin, program_clock_);
  }

  void begin_phase(std::int32_t name) {
    end_phase(program_clock_);
    phase_ = program_.names[name];
    phase_begin_ = program_clock_;
  }

  void end_phase(Nanoseconds end) {
    if (!phase_.empty() && phase_ != "end") add_span(SpanKind::kPhase, phase_, phase_begin_, end);
    phase_.clear();
  }

  void add_unpack(SavedId tensor, Nanoseconds now) {
    if (copy_of_[tensor] >= 0) timeline_.flows.push_back({copy_of_[tensor], Track::kCompute, now, "unpack"});
  }

  void count_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds now) {
    count("device_bytes", device_bytes, device_bytes_, now);
    count("host_bytes", host_bytes, host_bytes_, now);
  }

  void count(const char* name, Bytes bytes, Bytes& shown, Nanoseconds now) {
    if (bytes == shown) return;
    shown = bytes;
    timeline_.counters.push_back({name, now, bytes});
  }

  const StepProgram& program_;
  const Step& step_;
  Timeline timeline_;
  std::size_t walked_ = 0;
  Nanoseconds program_clock_ = 0;
  std::vector<std::pair<std::int32_t, Nanoseconds>> open_ops_;
  std::string phase_;
  Nanoseconds phase_begin_ = 0;
  Bytes disk_bytes_ = 0;
  std::vector<CopyId> copy_of_;
  Bytes device_bytes_ = -1, host_bytes_ = -1;
};

}  // namespace

Timeline replay_timeline(const StepProgram& program, const Step& step, const Policy& policy,
                         const Link& link) {
  TimelineListener listener(program, step);
  const Prediction prediction = replay(step, policy, link, &listener);
  return listener.finish(*prediction.metrics.step_time_ns);
}

}  // namespace offprof
