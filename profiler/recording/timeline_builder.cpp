#include "profiler/recording/timeline_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "profiler/recording/gpu_rows.h"

namespace offprof {
namespace {

/// Allocations below 1 / kShownShares of the step's peak are left out: a chart could not show them.
constexpr Bytes kShownShares = 1000;
/// Keeps the arrows and external ids of different steps apart.
constexpr std::int64_t kIdsPerStep = 1 << 24;

/// Builds the timeline of one step; times count from `origin`.
class StepTimeline {
 public:
  StepTimeline(const StepResult& step, std::size_t number, Nanoseconds origin, Timeline& timeline)
      : step_(step),
        pass_(step.recording),
        number_(number),
        origin_(origin),
        timeline_(timeline),
        gpu_(step, id(0)) {}

  void build() {
    add_step();
    for (std::size_t i = 0; i < pass_.events.size(); ++i) add(pass_.events[i], i);
    end_phase(pass_.end_ns);
    add_copies();
    add_disk_transfers();
    gpu_.add_to(timeline_, origin_);
    drop_open_ops();
  }

 private:
  Nanoseconds at(Nanoseconds time) const { return time - origin_; }
  std::int64_t id(std::int64_t in_step) const {
    return static_cast<std::int64_t>(number_) * kIdsPerStep + in_step;
  }
  std::int64_t flow(CopyId copy) const { return id(copy); }
  static Track track_of(CopyDirection direction) {
    return direction == CopyDirection::kD2h ? Track::kD2h : Track::kH2d;
  }

  void add_step() {
    Span span;
    span.kind = SpanKind::kStep;
    span.name = "ProfilerStep#" + std::to_string(number_);
    span.begin_ns = at(pass_.begin_ns);
    span.duration_ns = pass_.end_ns - pass_.begin_ns;
    timeline_.spans.push_back(span);
    device_bytes_ = shown_bytes_ = pass_.resident_bytes;
    count("device_bytes", device_bytes_, pass_.begin_ns);
    reserved_bytes_ = pass_.reserved_bytes;
    if (reserved_bytes_ > 0) count("device_reserved_bytes", reserved_bytes_, pass_.begin_ns);
  }

  void count(const char* name, Bytes value, Nanoseconds time) {
    timeline_.counters.push_back({name, at(time), value});
  }

  void add(const RawEvent& event, std::size_t index) {
    switch (event.kind) {
      case RawKind::kPhase:
        end_phase(event.begin_ns);
        open_phase_ = &event;
        return;
      case RawKind::kOpBegin:
        return begin_op(event, index);
      case RawKind::kOpEnd:
        return end_op(event);
      case RawKind::kAlloc:
        return add_memory(event, event.value);
      case RawKind::kFree:
        return add_memory(event, -event.value);
      case RawKind::kReload:
        return name_reload(event);
      case RawKind::kReserved:
        return reserve(event);
      case RawKind::kUnpack:
        return add_unpack(event);
      case RawKind::kCommand:
        return add_command(pass_.commands[event.id]);
      default:
        return;
    }
  }

  void end_phase(Nanoseconds end) {
    if (open_phase_ != nullptr && pass_.names[open_phase_->id] != "end")
      add_span(SpanKind::kPhase, pass_.names[open_phase_->id], open_phase_->begin_ns, end);
    open_phase_ = nullptr;
  }

  /// Adds the operator's span before those of the operators in it, even if they have the same times.
  void begin_op(const RawEvent& event, std::size_t index) {
    open_ops_.push_back(timeline_.spans.size());
    Span& span = add_span(SpanKind::kOp, pass_.names[event.id], event.begin_ns, event.begin_ns);
    span.is_nested = event.value > 0;
    span.external_id = gpu_.external_id(index);
  }

  void end_op(const RawEvent& event) {
    if (open_ops_.empty()) return;
    Span& span = timeline_.spans[open_ops_.back()];
    span.duration_ns = at(event.begin_ns) - span.begin_ns;
    open_ops_.pop_back();
  }

  /// Removes operators whose end is not known.
  void drop_open_ops() {
    for (; !open_ops_.empty(); open_ops_.pop_back())
      timeline_.spans.erase(timeline_.spans.begin() + static_cast<std::ptrdiff_t>(open_ops_.back()));
  }

  Span& add_span(SpanKind kind, const std::string& name, Nanoseconds begin, Nanoseconds end) {
    Span& span = timeline_.spans.emplace_back();
    span.kind = kind;
    span.name = name;
    span.begin_ns = at(begin);
    span.duration_ns = end - begin;
    return span;
  }

  bool is_shown(Bytes bytes) const { return std::abs(bytes) * kShownShares >= step_.device_peak_bytes; }

  void add_memory(const RawEvent& event, Bytes change) {
    device_bytes_ += change;
    if (is_shown(change))
      timeline_.allocator.push_back(
          {at(event.begin_ns), event.id, change, device_bytes_, reserved_bytes_, stack()});
    if (!is_shown(device_bytes_ - shown_bytes_)) return;
    shown_bytes_ = device_bytes_;
    count("device_bytes", device_bytes_, event.begin_ns);
  }

  /// Names the allocation of a reload, which is the last one if it is shown.
  void name_reload(const RawEvent& event) {
    if (timeline_.allocator.empty() || timeline_.allocator.back().allocation != event.id) return;
    timeline_.allocator.back().stack += timeline_.allocator.back().stack.empty() ? "reload" : ";reload";
  }

  void reserve(const RawEvent& event) {
    reserved_bytes_ = event.value;
    count("device_reserved_bytes", event.value, event.begin_ns);
  }

  /// Returns the open names, as for AllocatorEvent::stack. An autograd node and its evaluation have the same
  /// name, which counts once.
  std::string stack() const {
    std::vector<std::string> names;
    if (open_phase_ != nullptr) names.push_back(pass_.names[open_phase_->id]);
    for (const std::size_t op : open_ops_) names.push_back(timeline_.spans[op].name);
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return fmt::format("{}", fmt::join(names, ";"));
  }

  void count_host(Bytes change, Nanoseconds time) {
    host_bytes_ += change;
    count("host_bytes", host_bytes_, time);
  }

  void count_disk(Bytes change, Nanoseconds time) {
    disk_bytes_ += change;
    count("disk_bytes", disk_bytes_, time);
  }

  void add_unpack(const RawEvent& event) {
    const CopyId copy = pass_.saved[event.id].copy;
    if (copy >= 0) timeline_.flows.push_back({flow(copy), Track::kCompute, at(event.begin_ns), "unpack"});
  }

  void add_command(const RawCommand& raw) {
    std::visit([&](const auto& each) { add(each, raw); }, raw.command);
  }

  void add(const CopyOut& command, const RawCommand& raw) {
    timeline_.flows.push_back({flow(command.copy), Track::kCompute, at(raw.begin_ns), "pack"});
    count_host(command.bytes, raw.begin_ns);
  }
  void add(const ReadDisk& command, const RawCommand& raw) { count_host(command.bytes, raw.begin_ns); }
  void add(const FreeHost& command, const RawCommand& raw) { count_host(-command.bytes, raw.begin_ns); }
  void add(const TakeDisk& command, const RawCommand& raw) { count_disk(command.bytes, raw.begin_ns); }
  void add(const FreeDisk& command, const RawCommand& raw) { count_disk(-command.bytes, raw.begin_ns); }
  void add(const WaitWrite& command, const RawCommand& raw) {
    add_wait(command, raw, Track::kDiskWrite,
             "the host buffer must be freed, but its write to the disk is not done");
  }
  void add(const WaitRead& command, const RawCommand& raw) {
    add_wait(command, raw, Track::kDiskRead,
             "the host buffer must be freed, but a disk read into it is not done");
  }
  void add(const WaitOut& command, const RawCommand& raw) {
    add_wait(command, raw, Track::kD2h, "the device copy must be freed before the step continues");
  }
  void add(const WaitIn& command, const RawCommand& raw) {
    add_wait(command, raw, Track::kH2d, "backward needs the tensor");
  }
  void add(const OneOf<Keep, ReleaseKept, Drop, CopyIn, Encode, Decode, DropForRecompute, Recompute,
                       WriteDisk> auto& /*command*/,
           const RawCommand& /*raw*/) {}

  void add_wait(const CopyCommand& command, const RawCommand& raw, Track copy_track,
                const std::string& reason) {
    Span& span = add_span(SpanKind::kWait, wait_name(copy_track), raw.begin_ns, raw.end_ns);
    span.copy_track = copy_track;
    span.tensor = command.tensor;
    span.bytes = command.bytes;
    span.reason = reason;
  }

  void add_copies() {
    std::vector<SavedId> tensor_of;
    for (const RawCommand& raw : pass_.commands) {
      const CopyCommand* const command = copy_fields(raw.command);
      if (command != nullptr && command->copy == static_cast<CopyId>(tensor_of.size()))
        tensor_of.push_back(command->tensor);
    }
    for (const CopyRecord& copy : step_.copies) {
      const bool out = copy.direction == CopyDirection::kD2h;
      if (const auto seen = gpu_.match(copy)) {
        timeline_.flows.push_back({flow(static_cast<CopyId>(copy.tag)), track_of(copy.direction),
                                   at(seen->begin_ns), out ? "copy out" : "copy in", seen->stream});
        continue;
      }
      const bool is_of_parameters = copy.tag < 0;
      Span& span = add_span(
          SpanKind::kCopy,
          is_of_parameters ? (out ? "parameters out" : "parameters in") : (out ? "copy out" : "copy in"),
          copy.begin_ns, copy.end_ns);
      span.track = track_of(copy.direction);
      span.bytes = copy.bytes;
      if (is_of_parameters) continue;
      span.tensor = tensor_of[static_cast<std::size_t>(copy.tag)];
      timeline_.flows.push_back({flow(static_cast<CopyId>(copy.tag)), span.track, span.begin_ns, span.name});
    }
  }

  void add_disk_transfers() {
    for (const DiskRecord& transfer : step_.disk_transfers) {
      const Track track = transfer.direction == DiskDirection::kWrite ? Track::kDiskWrite : Track::kDiskRead;
      Span& span = add_span(SpanKind::kCopy, disk_transfer_name(track), transfer.begin_ns, transfer.end_ns);
      span.track = track;
      span.bytes = transfer.bytes;
      // parameters have no tag
      if (transfer.tag >= 0) span.tensor = tensor_of(static_cast<CopyId>(transfer.tag));
    }
  }

  SavedId tensor_of(CopyId copy) const {
    for (const RawCommand& raw : pass_.commands)
      if (const CopyCommand* const command = copy_fields(raw.command);
          command != nullptr && command->copy == copy)
        return command->tensor;
    return -1;
  }

  const StepResult& step_;
  const RecordedPass& pass_;
  std::size_t number_;
  Nanoseconds origin_;
  Timeline& timeline_;
  GpuRows gpu_;
  const RawEvent* open_phase_ = nullptr;
  std::vector<std::size_t> open_ops_;  ///< indices of their spans, outermost first
  Bytes device_bytes_ = 0, shown_bytes_ = 0, reserved_bytes_ = 0, host_bytes_ = 0, disk_bytes_ = 0;
};

}  // namespace

Timeline build_timeline(std::span<const StepResult> steps) {
  Timeline timeline;
  for (std::size_t i = 0; i < steps.size(); ++i)
    StepTimeline(steps[i], i, steps.front().recording.begin_ns, timeline).build();
  return timeline;
}

}  // namespace offprof
