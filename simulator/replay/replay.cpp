#include "simulator/replay/replay.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/scheduler/placement_rules.h"
#include "simulator/replay/virtual_executor.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Upper bound on the time of all copies of a step, including the compute time added because of them. The
/// step program's own times are bounded by check_program.
double longest_offloading_ns(const Step& step, const Link& link) {
  const EngineCosts& costs = step.costs();
  const double bytes = step.most_copied_bytes();
  Nanoseconds per_copy = 2 * (link.launch_ns + costs.event_ns);
  if (!costs.standstills.empty()) per_copy += 2 * costs.standstills.back().lost_ns;
  double longest = static_cast<double>(costs.hook_ns) * static_cast<double>(step.events().size()) +
                   costs.reload_ns_per_byte * bytes;
  for (const LinkDirection& direction : {link.d2h, link.h2d}) {
    per_copy += direction.latency_ns + direction.start_ns;
    if (direction.bytes_per_second > 0) longest += 1e9 * bytes / direction.bytes_per_second;
  }
  for (const LinkDirection& direction : {link.disk.write, link.disk.read}) {
    per_copy += direction.latency_ns;
    if (direction.bytes_per_second > 0) longest += 1e9 * bytes / direction.bytes_per_second;
  }
  return longest + static_cast<double>(per_copy) * static_cast<double>(step.most_copies());
}

/// Clocks and sums over them have 64 bits.
void refuse_endless(const Step& step, const Link& link) {
  constexpr double kLongest = 5e17;
  if (longest_offloading_ns(step, link) <= kLongest) return;
  throw input_error("with this link, a step that offloads everything would take more than 15 years",
                    "Give a faster link, such as --link 25GB/s,10us");
}

}  // namespace

/// Drives a scheduler through a step's events, in the way autograd drives it in a run.
class Replayer {
 public:
  Replayer(const CarriedMemory& carried, const Step& step, const Policy& policy, const Link& link,
           ReplayListener* listener)
      : step_(step),
        placements_(std::make_shared<const StepPlacements>(step.place(policy))),
        resident_bytes_(VirtualExecutor::resident_bytes(step, carried)),
        executor_(step, policy, link, placements_->by_tensor, carried, listener),
        scheduler_(make_scheduler(policy, step.backward_order(), executor_)),
        listener_(listener),
        unpacked_storage_(step.requests().size(), -1) {
    refuse_endless(step, link);
    if (listener != nullptr) listener->on_memory(resident_bytes_, executor_.host_bytes(), 0);
  }

  /// Stands at the same point as `other`, and continues under `policy`.
  Replayer(const Replayer& other, const Policy& policy, ReplayListener* listener)
      : step_(other.step_),
        placements_(other.placements_),
        resident_bytes_(other.resident_bytes_),
        executor_(other.executor_),
        scheduler_(other.scheduler_->clone(policy, executor_)),
        listener_(listener),
        unpacked_storage_(other.unpacked_storage_),
        requested_frees_(other.requested_frees_),
        launch_gap_ns_(other.launch_gap_ns_),
        node_tensors_(other.node_tensors_),
        next_event_(other.next_event_),
        peak_event_(other.peak_event_) {
    executor_.set_listener(listener);
  }

  std::size_t next_event() const { return next_event_; }

  void advance_to(std::size_t end) {
    const std::span<const Event> events = step_.events();
    for (std::size_t i = next_event_; i < end; ++i) {
      const Bytes peak_before = executor_.memory().peak_bytes();
      compute(i, events[i].compute_ns);
      if (listener_ != nullptr) listener_->on_event_begin(i, executor_.clock().now());
      if (!requested_frees_.empty()) free_what_is_reached();
      for (const Step::LetGo& let_go : step_.let_goes(i)) executor_.let_go(let_go.storage);
      replay(events[i]);
      if (executor_.memory().peak_bytes() > peak_before) peak_event_ = i;
      if (listener_ != nullptr) tell(i);
    }
    next_event_ = std::max(next_event_, end);
  }

  bool agrees(const Policy& other) const {
    if (next_event_ == 0 && !scheduler_->starts_alike(other)) return false;
    if (next_event_ == step_.events().size()) return true;
    const Event& next = step_.events()[next_event_];
    if (next.kind == EventKind::kUnpack) return scheduler_->unpacks_alike(other);
    if (next.kind != EventKind::kPack) return true;
    return scheduler_->packs_alike(next.id, step_.requests()[next.id], executor_.rule(next.id), other);
  }

  std::optional<LimitRanges> limit_ranges() const { return scheduler_->limit_ranges(); }

  Prediction finish() {
    advance_to(step_.events().size());
    compute(step_.events().size(), step_.tail_compute_ns());
    return {executor_.carried(), metrics(), peak_event_};
  }

 private:
  /// Runs the compute work before event `index`.
  void compute(std::size_t index, Nanoseconds compute_ns) {
    if (step_.work().empty()) return executor_.clock().compute(compute_ns);
    if (const Step::StreamWork* streams = step_.stream_work(index)) {
      for (const StreamCommand& command : streams->commands) executor_.clock().run(command);
      executor_.clock().run(streams->after);
    } else {
      executor_.clock().run(step_.work()[index]);
    }
    if (listener_ != nullptr) tell_launch_gap();
  }

  /// Reports the launch gap since the last call to the listener.
  void tell_launch_gap() {
    VirtualClock& clock = executor_.clock();
    const Nanoseconds gap = clock.launch_gap_ns() - launch_gap_ns_;
    if (gap <= 0) return;
    launch_gap_ns_ += gap;
    listener_->on_stall({StallReason::kLaunch, -1, 0, clock.now() - gap, gap});
  }

  void replay(const Event& event) {
    executor_.set_event(event.kind, event.id);
    switch (event.kind) {
      case EventKind::kAlloc:
        return executor_.memory().hold(event.id);
      case EventKind::kFreeRequested:
        if (!step_.free_points_of(event.id).empty()) requested_frees_.push_back(event.id);
        return executor_.memory().request_free(event.id);
      case EventKind::kFree:
        if (!step_.free_points_of(event.id).empty()) return;
        if (step_.carries_tensors() && step_.is_resident(event.id)) return executor_.free_older(event.id);
        return executor_.memory().free_unpacked(event.id);
      case EventKind::kPack:
        return pack(event.id);
      case EventKind::kUnpack:
        return unpack(event.id);
      case EventKind::kRelease:
        executor_.clock().hook();
        return scheduler_->release(event.id);
      case EventKind::kNodeEnd:
        return node_end();
      case EventKind::kFreeUnpacked:
        return program_lets_go(event.id);
      case EventKind::kBackwardEnd:
        return scheduler_->backward_end();
      case EventKind::kFetch:
        return executor_.fetch_parameters(event.id);
      case EventKind::kFetched:
        return executor_.wait_for_parameters(event.id);
      case EventKind::kSave:
        return executor_.save_parameters(event.id);
      case EventKind::kPhase:
      case EventKind::kOpBegin:
      case EventKind::kOpEnd:
        break;
    }
    OFFPROF_CHECK(false);  // Step has removed these events
  }

  /// Frees storages after the streams that used them. The allocator looks for them when it allocates, and so
  /// before each event at the latest.
  void free_what_is_reached() {
    std::erase_if(requested_frees_, [&](std::int32_t storage) {
      const auto is_reached = [&](const FreePoint& freed) {
        return executor_.clock().has_reached(freed.point);
      };
      if (!std::ranges::all_of(step_.free_points_of(storage), is_reached)) return false;
      executor_.memory().free_unpacked(storage);
      return true;
    });
  }

  void pack(SavedId tensor) {
    executor_.clock().hook();
    const PackDecision decision = scheduler_->pack(tensor, step_.requests()[tensor], executor_.rule(tensor));
    executor_.set_copy(tensor, decision.copy);
    if (listener_ != nullptr) listener_->on_placement(tensor, decision);
  }

  /// The node holds the unpacked tensor until its end.
  void unpack(SavedId tensor) {
    executor_.clock().hook();
    scheduler_->unpack(tensor);
    if (unpacked_storage_[tensor] >= 0) return;
    unpacked_storage_[tensor] = executor_.device_storage(tensor);
    executor_.memory().hold(unpacked_storage_[tensor]);
    node_tensors_.push_back(tensor);
  }

  void node_end() {
    node_escaped_.clear();
    for (const SavedId tensor : node_tensors_) {
      if (unpacked_storage_[tensor] < 0) continue;  // released before
      if (step_.escapes(tensor))
        node_escaped_.push_back(tensor);
      else
        program_lets_go(tensor);
    }
    scheduler_->node_end(node_tensors_, node_escaped_);
    node_tensors_.clear();
  }

  void program_lets_go(SavedId tensor) {
    OFFPROF_CHECK(unpacked_storage_[tensor] >= 0);
    executor_.memory().free_unpacked(unpacked_storage_[tensor]);
    unpacked_storage_[tensor] = -1;
  }

  void tell(std::size_t index) {
    listener_->on_memory(executor_.memory().live_bytes(), executor_.host_bytes(), executor_.clock().now());
    listener_->on_event(index, executor_.clock().now());
  }

  Metrics metrics() {
    const VirtualClock& clock = executor_.clock();
    Metrics metrics;
    metrics.device_peak_bytes = executor_.memory().peak_bytes();
    metrics.device_resident_bytes = resident_bytes_;
    metrics.host_peak_bytes = executor_.host_peak_bytes();
    if (const ReplayedDisk& disk = executor_.disk(); disk.is_used()) {
      metrics.disk_peak_bytes = disk.peak_bytes();
      metrics.disk_write_bytes = disk.write_bytes();
      metrics.disk_read_bytes = disk.read_bytes();
    }
    metrics.step_time_ns = clock.now();
    metrics.compute_ns = clock.now() - clock.exposed_ns() - clock.launch_gap_ns();
    metrics.d2h_bytes = executor_.d2h_bytes();
    metrics.h2d_bytes = executor_.h2d_bytes();
    metrics.d2h_busy_ns = clock.d2h_busy_ns();
    metrics.h2d_busy_ns = clock.h2d_busy_ns();
    metrics.exposed_ns = clock.exposed_ns();
    if (!step_.work().empty()) metrics.launch_gap_ns = clock.launch_gap_ns();
    metrics.overlap_ratio = overlap_ratio(clock.exposed_ns(), clock.d2h_busy_ns(), clock.h2d_busy_ns());
    return metrics;
  }

  const Step& step_;
  std::shared_ptr<const StepPlacements> placements_;  ///< shared by forks
  Bytes resident_bytes_;                              ///< when the step begins
  VirtualExecutor executor_;
  std::unique_ptr<Scheduler> scheduler_;
  ReplayListener* listener_;
  /// By saved tensor: the storage that the step program holds for it; -1: none.
  std::vector<std::int32_t> unpacked_storage_;
  std::vector<std::int32_t> requested_frees_;  ///< storages that wait for their points
  Nanoseconds launch_gap_ns_ = 0;              ///< the part that the listener has heard of
  std::vector<SavedId> node_tensors_;          ///< unpacked since the last node end
  std::vector<SavedId> node_escaped_;          ///< of those; used only within a node's end
  std::size_t next_event_ = 0;
  std::size_t peak_event_ = 0;
};

namespace {

/// Steps under a limit of host memory may leave something else in turns, without end.
constexpr int kMostStepsUntilSteady = 4;

constexpr std::array<std::string_view, 9> kReasonNames = {"stash_full", "stash_emptied", "no_stash",
                                                          "released",   "reload_late",   "link",
                                                          "parameters", "launch",        "disk"};
constexpr std::array<std::string_view, 9> kReasons = {
    "the stash is full, and the D2H copy of its oldest tensor is not done",
    "backward begins and empties the stash, but a D2H copy is not done",
    "no stash holds the tensor, and its D2H copy is not done",
    "autograd releases the tensor before its D2H copy is done",
    "backward needs the tensor, but its reload began too late",
    "the link is busy with earlier copies",
    "an operator needs parameters that are still being copied",
    "the host has not launched the next kernel yet",
    "the disk write or read of the tensor is not done"};
static_assert(kReasons.size() == static_cast<std::size_t>(StallReason::kDisk) + 1);

}  // namespace

std::string_view to_string(StallReason reason) {
  return kReasonNames.at(static_cast<std::size_t>(reason));
}

std::string_view describe(StallReason reason) {
  return kReasons.at(static_cast<std::size_t>(reason));
}

namespace {

/// Memory that steps under a policy leave after a few of them.
struct LastCarried {
  CarriedMemory memory;
  bool is_same_from_the_first = true;
};

/// The first step finds everything on the device. What it leaves differs from what later ones leave only if
/// host memory is limited: copies of older steps count.
LastCarried last_carried(const Step& step, const Policy& policy, const Link& link) {
  if (!step.carries_tensors()) return {};
  LastCarried last{everything_on_device(step)};
  for (int i = 0; i < kMostStepsUntilSteady; ++i) {
    CarriedMemory next = replay_after(last.memory, step, policy, link).carried;
    if (next == last.memory) break;
    last.is_same_from_the_first = i == 0;
    last.memory = std::move(next);
  }
  return last;
}

}  // namespace

CarriedMemory everything_on_device(const Step& step) {
  CarriedMemory carried;
  if (!step.carries_tensors()) return carried;
  for (const Step::StepRenewal& renewal : step.renewals())
    carried.is_held.push_back(renewal.has_tensors ? 1 : 0);
  return carried;
}

CarriedMemory steady_memory(const Step& step, const Policy& policy, const Link& link) {
  return last_carried(step, policy, link).memory;
}

bool leaves_the_same(const Step& step, const Policy& policy, const Link& link) {
  return last_carried(step, policy, link).is_same_from_the_first;
}

Prediction replay_after(const CarriedMemory& carried, const Step& step, const Policy& policy,
                        const Link& link, ReplayListener* listener) {
  return Replayer(carried, step, policy, link, listener).finish();
}

Prediction replay(const Step& step, const Policy& policy, const Link& link, ReplayListener* listener) {
  return replay_after(steady_memory(step, policy, link), step, policy, link, listener);
}

PartialReplay::PartialReplay(const Step& step, const Policy& policy, const Link& link,
                             ReplayListener* listener)
    : PartialReplay(
          std::make_unique<Replayer>(steady_memory(step, policy, link), step, policy, link, listener)) {}

PartialReplay::PartialReplay(std::unique_ptr<Replayer> replayer) : replayer_(std::move(replayer)) {}
PartialReplay::PartialReplay(PartialReplay&&) noexcept = default;
PartialReplay& PartialReplay::operator=(PartialReplay&&) noexcept = default;
PartialReplay::~PartialReplay() = default;

std::size_t PartialReplay::next_event() const {
  return replayer_->next_event();
}

void PartialReplay::advance_to(std::size_t event) {
  replayer_->advance_to(event);
}

PartialReplay PartialReplay::fork(const Policy& policy, ReplayListener* listener) const {
  return PartialReplay(std::make_unique<Replayer>(*replayer_, policy, listener));
}

bool PartialReplay::agrees(const Policy& policy) const {
  return replayer_->agrees(policy);
}

std::optional<LimitRanges> PartialReplay::limit_ranges() const {
  return replayer_->limit_ranges();
}

Prediction PartialReplay::finish() {
  return replayer_->finish();
}

}  // namespace offprof
