#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/command_log.h"
#include "engine/scheduler/scheduler.h"
#include "tests/support/random_policy.h"

namespace offprof {
namespace {

/// Action of autograd. Its numbers are taken modulo the number of candidates, so that any list of actions is
/// valid.
struct Action {
  int kind = 0;  ///< 0 and 1: pack; 2: unpack; 3: unpack, and its node ends; 4: release
  int pick = 0;  ///< chooses the storage, or the tensor among those not released
  int size = 0;
};

std::ostream& operator<<(std::ostream& out, const Action& action) {
  return out << "{" << action.kind << ", " << action.pick << ", " << action.size << "}";
}

constexpr int kMostBytes = 100;  ///< maximum size of a storage

rc::Gen<std::vector<Action>> actions() {
  return rc::gen::container<std::vector<Action>>(
      rc::gen::build<Action>(rc::gen::set(&Action::kind, rc::gen::inRange(0, 5)),
                             rc::gen::set(&Action::pick, rc::gen::inRange(0, 1000)),
                             rc::gen::set(&Action::size, rc::gen::inRange(1, kMostBytes))));
}

/// Fails on any command that an executor could not carry out safely.
class CheckingExecutor final : public Executor {
 public:
  struct Copy {
    CopyCommand out;  ///< the command that created it
    bool on_device = true;
    bool out_waited = false;
    bool reloaded = false;
    bool in_waited = true;
    bool host_freed = false;
    bool is_dropped_for_recompute = false;
    bool on_disk = false;  ///< has space on the disk
    bool writing = false, written = false, reading = false;
  };

  void execute(const Command& command) override {
    commands_.push_back(command);
    std::visit([this](const auto& each) { check(each); }, command);
  }

  /// Refuses tried commands as `refusals` says: one entry per try, in order.
  explicit CheckingExecutor(std::vector<bool> refusals = {}) : refusals_(std::move(refusals)) {}

  bool try_execute(const RefusableCommand& command) override {
    if (tried_ < refusals_.size() && refusals_[tried_++]) return false;
    return Executor::try_execute(command);
  }

  /// Sets a check that runs before each Recompute.
  void set_recompute_check(std::function<void(SavedId)> check) { check_recompute_ = std::move(check); }

  const std::vector<Command>& commands() const { return commands_; }
  const std::vector<Copy>& copies() const { return copies_; }
  const std::set<SavedId>& kept() const { return kept_; }
  Bytes host_bytes() const { return host_bytes_; }
  Bytes disk_bytes() const { return disk_bytes_; }
  /// Host memory of copies that are on the disk.
  Bytes buffer_bytes() const { return buffer_bytes_; }

 private:
  void check(const Keep& command) { RC_ASSERT(kept_.insert(command.tensor).second); }
  void check(const ReleaseKept& command) { RC_ASSERT(kept_.erase(command.tensor) == 1U); }
  void check(const TakeDisk& command) {
    RC_ASSERT(!taken_disk_);
    taken_disk_ = command;
    disk_bytes_ += command.bytes;
  }
  void check(const CopyOut& command) {
    RC_ASSERT(command.copy == static_cast<CopyId>(copies_.size()));
    copies_.push_back({command});
    host_bytes_ += command.bytes;
    if (!taken_disk_) return;
    RC_ASSERT(taken_disk_->copy == command.copy && taken_disk_->bytes == command.bytes);
    taken_disk_.reset();
    copies_.back().on_disk = true;
    buffer_bytes_ += command.bytes;
  }
  /// Adds a copy that has no storage and never has host memory.
  void check(const DropForRecompute& command) {
    RC_ASSERT(command.copy == static_cast<CopyId>(copies_.size()));
    copies_.push_back({command, false, true, false, true, true, true});
  }
  void check(const WaitOut& command) { copy_of(command).out_waited = true; }
  void check(const Drop& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(copy.on_device);
    RC_ASSERT(copy.out_waited && copy.in_waited);
    copy.on_device = false;
  }
  void check(const CopyIn& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(!copy.on_device && !copy.host_freed);
    RC_ASSERT(copy.out_waited);
    copy.reading = false;  // the copy in begins after the read
    copy.on_device = copy.reloaded = true;
    copy.in_waited = false;
  }
  void check(const WaitIn& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(copy.reloaded);
    copy.in_waited = true;
  }
  void check(const Recompute& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(copy.is_dropped_for_recompute && !copy.reloaded);
    check_recompute_(command.tensor);
    copy.on_device = copy.reloaded = true;
  }
  void check(const FreeHost& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(!copy.host_freed);
    RC_ASSERT((copy.out_waited || copy.written) && copy.in_waited);
    RC_ASSERT(!copy.writing && !copy.reading);
    copy.host_freed = true;
    host_bytes_ -= command.bytes;
    if (copy.on_disk) buffer_bytes_ -= command.bytes;
  }
  void check(const WriteDisk& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(copy.on_disk && !copy.host_freed && !copy.written);
    copy.writing = copy.written = true;
  }
  void check(const WaitWrite& command) { RC_ASSERT(std::exchange(copy_of(command).writing, false)); }
  void check(const ReadDisk& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(copy.on_disk && copy.host_freed && copy.written);
    copy.host_freed = false;
    copy.reading = true;
    host_bytes_ += command.bytes;
    buffer_bytes_ += command.bytes;
  }
  void check(const WaitRead& command) { RC_ASSERT(std::exchange(copy_of(command).reading, false)); }
  void check(const FreeDisk& command) {
    Copy& copy = copy_of(command);
    RC_ASSERT(copy.on_disk && copy.host_freed);
    copy.on_disk = false;
    disk_bytes_ -= command.bytes;
  }
  void check(const OneOf<Encode, Decode> auto& /*command*/) { RC_FAIL("no rule encodes a tensor"); }

  Copy& copy_of(const CopyCommand& command) {
    RC_ASSERT(command.copy >= 0 && command.copy < static_cast<CopyId>(copies_.size()));
    Copy& copy = copies_[command.copy];
    RC_ASSERT(command.bytes == copy.out.bytes);
    RC_ASSERT(command.tensor == copy.out.tensor);
    return copy;
  }

  std::function<void(SavedId)> check_recompute_;
  std::vector<bool> refusals_;
  std::size_t tried_ = 0;
  std::vector<Command> commands_;
  std::vector<Copy> copies_;
  std::set<SavedId> kept_;
  std::optional<TakeDisk> taken_disk_;  ///< taken by a copy that has not gone out yet
  Bytes host_bytes_ = 0, disk_bytes_ = 0, buffer_bytes_ = 0;
};

/// Plays actions to a scheduler as autograd would, and checks the scheduler after each.
class Play {
 public:
  Play(const Policy& policy, const std::vector<SavedId>& backward_order,
       const std::vector<bool>& refusals = {})
      : policy_(policy), executor_(refusals), scheduler_(make_scheduler(policy, backward_order, executor_)) {
    executor_.set_recompute_check([this](SavedId tensor) {
      for (const SavedId source : recomputations_.at(tensor).sources) RC_ASSERT(is_ready(source));
    });
  }

  void run(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      run(action);
      check_limits();
    }
    node_end();
    scheduler_->backward_end();
    while (!live_.empty()) release(live_.back());
    check_end();
  }

  const std::vector<Command>& commands() const { return executor_.commands(); }

 private:
  struct Tensor {
    CopyId copy = -1;
    bool kept = false;
  };

  void run(const Action& action) {
    if (action.kind < 2) return pack(action);
    if (live_.empty()) return;
    const SavedId tensor = live_[static_cast<std::size_t>(action.pick) % live_.size()];
    if (action.kind == 4) return release(tensor);
    unpack(tensor);
    if (action.kind == 3) node_end();
  }

  /// Packs a tensor. Every third pack is of a storage that was saved before; every fourth of those has a new
  /// version.
  void pack(const Action& action) {
    if (storages_.empty() || action.pick % 3 != 0) {
      storages_.push_back({static_cast<std::int64_t>(storages_.size()) + 1, 0, action.size, action.size,
                           Movability::kMovable, false});
      storages_.back().tensor_bytes = std::max(1, action.size / (1 + action.pick % 2));
      if (action.pick % 10 == 1) storages_.back().movability = Movability::kBuffer;
      if (action.pick % 10 == 2) storages_.back().movability = Movability::kParameter;
      storages_.back().is_parameter = action.pick % 20 == 2;
    }
    PackRequest& request = storages_[static_cast<std::size_t>(action.pick) % storages_.size()];
    if (action.pick % 12 == 0) ++request.version;
    const auto tensor = static_cast<SavedId>(tensors_.size());
    const PackDecision decision = scheduler_->pack(tensor, request, rule_for(tensor, action));
    RC_ASSERT((decision.place != Place::kDevice) == (decision.copy >= 0));
    tensors_.push_back({decision.copy, decision.copy < 0});
    operators_.push_back(decision.place == Place::kRecompute
                             ? operators_to_make(executor_.copies()[decision.copy].out.tensor)
                             : 0);
    RC_ASSERT(executor_.kept().contains(tensor) == (decision.copy < 0));
    live_.push_back(tensor);
  }

  /// Returns the rule of a tensor. A quarter of the tensors are recomputed from one or two earlier ones,
  /// which may be gone or recomputed too. If the policy has rules, most other tensors go to the disk.
  RuledPlacement rule_for(SavedId tensor, const Action& action) {
    if (tensor == 0 || action.pick % 4 != 1) return tier_for(action);
    Recomputation recomputation = {tensor, "op", {action.pick % tensor}};
    if (const SavedId other = action.size % tensor; other != recomputation.sources[0])
      recomputation.sources.push_back(other);
    ResolvedPlacement placement{Place::kRecompute};
    placement.recomputation = &recomputations_.emplace(tensor, recomputation).first->second;
    if (operators_to_make(tensor) <= kMostOperators) return placement;
    return {};
  }

  RuledPlacement tier_for(const Action& action) const {
    if (policy_.rules.empty() || action.pick % 5 == 0) return {};
    return ResolvedPlacement{action.pick % 4 == 0 ? Place::kHost : Place::kDisk};
  }

  int operators_to_make(SavedId tensor) const {
    int operators = 1;
    for (const SavedId source : recomputations_.at(tensor).sources) operators += operators_[source];
    return operators;
  }

  bool is_ready(SavedId tensor) const {
    const CopyId copy = tensors_[tensor].copy;
    if (copy < 0) return executor_.kept().contains(tensor);
    return executor_.copies()[copy].on_device && executor_.copies()[copy].in_waited;
  }

  /// Marks the tensor's copy as unpacked, and with it the sources of its recomputation.
  void ask_for(SavedId tensor) {
    const CopyId copy = tensors_[tensor].copy;
    if (copy < 0) return;
    asked_copies_.insert(copy);
    const CheckingExecutor::Copy& asked = executor_.copies()[copy];
    if (!asked.is_dropped_for_recompute || asked.on_device) return;
    for (const SavedId source : recomputations_.at(asked.out.tensor).sources) ask_for(source);
  }

  void unpack(SavedId tensor) {
    const bool first = asked_tensors_.insert(tensor).second;
    const CopyId copy = tensors_[tensor].copy;
    ask_for(tensor);
    scheduler_->unpack(tensor);
    node_tensors_.push_back(tensor);
    // TRL drops a tensor that was unpacked once.
    if (policy_.scheduler == SchedulerKind::kTrl && !first) return;
    if (copy < 0) return;
    RC_ASSERT(executor_.copies()[copy].on_device);
    RC_ASSERT(executor_.copies()[copy].in_waited);
  }

  /// Ends a node. Some of the tensors that it unpacked are used beyond it.
  void node_end() {
    std::vector<SavedId> escaped;
    for (const SavedId tensor : node_tensors_)
      if (tensor % 3 == 0) escaped.push_back(tensor);
    scheduler_->node_end(node_tensors_, escaped);
    node_tensors_.clear();
  }

  /// Releases a tensor. Autograd does so only after the node that saved it has ended.
  void release(SavedId tensor) {
    node_end();
    scheduler_->release(tensor);
    live_.erase(std::find(live_.begin(), live_.end(), tensor));
  }

  void check_limits() const {
    if (traits_of(policy_.scheduler).has_few_settings) return;
    const Bytes on_host = executor_.host_bytes() - executor_.buffer_bytes();
    RC_ASSERT(on_host <= policy_.host_memory_bytes.value_or(on_host));
    RC_ASSERT(executor_.disk_bytes() <= policy_.disk_memory_bytes.value_or(executor_.disk_bytes()));
    // One copy that is needed now may come on top of those that are being read.
    RC_ASSERT(executor_.buffer_bytes() <= policy_.disk_buffer_bytes + kMostBytes);
    std::int64_t stashed = 0;
    Bytes stashed_bytes = 0, ahead_bytes = 0;
    for (const CheckingExecutor::Copy& copy : executor_.copies()) {
      if (!copy.on_device || asked_copies_.contains(copy.out.copy)) continue;
      if (copy.reloaded) {
        ahead_bytes += copy.out.bytes;
      } else {
        ++stashed;
        stashed_bytes += copy.out.bytes;
      }
    }
    RC_ASSERT(ahead_bytes <= policy_.prefetch_bytes);
    RC_ASSERT(stashed <= policy_.stash_count.value_or(stashed));
    RC_ASSERT(stashed_bytes <= policy_.stash_bytes.value_or(stashed_bytes));
    if (!policy_.stash_count && !policy_.stash_bytes) RC_ASSERT(stashed == 0);
  }

  void check_end() const {
    RC_ASSERT(executor_.kept().empty());
    RC_ASSERT(executor_.host_bytes() == 0 && executor_.disk_bytes() == 0);
    for (const CheckingExecutor::Copy& copy : executor_.copies()) {
      RC_ASSERT(copy.host_freed);
      RC_ASSERT(!copy.on_device && !copy.on_disk);
    }
  }

  Policy policy_;
  CheckingExecutor executor_;
  std::unique_ptr<Scheduler> scheduler_;
  static constexpr int kMostOperators = 16;

  std::map<SavedId, Recomputation> recomputations_;
  /// Operators that run to recompute each tensor, by tensor; 0 if it is not recomputed.
  std::vector<int> operators_;
  std::vector<PackRequest> storages_;  ///< in their present version
  std::vector<Tensor> tensors_;
  std::vector<SavedId> live_;
  std::vector<SavedId> node_tensors_;
  std::set<SavedId> asked_tensors_;
  std::set<CopyId> asked_copies_;
};

/// Generates an order such as a recorded step could have: this step lacks some tensors of the order, and the
/// order lacks some tensors of this step.
rc::Gen<std::vector<SavedId>> backward_orders() {
  return rc::gen::unique<std::vector<SavedId>>(rc::gen::inRange<SavedId>(0, 60));
}

/// Generates a policy of any scheduler.
rc::Gen<Policy> random_policy_of_any_scheduler() {
  return rc::gen::mapcat(rc::gen::elementOf(kSchedulers), [](const SchedulerTraits& traits) {
    return random_policy(traits.kind, kMostBytes);
  });
}

RC_GTEST_PROP(SchedulerProperty, CommandsAreSafeWithinLimitsAndLeaveNothing, ()) {
  const Policy policy = *random_policy_of_any_scheduler();
  const std::vector<SavedId> order = *backward_orders();
  Play(policy, order).run(*actions());
}

RC_GTEST_PROP(OffloadSchedulerProperty, CommandsAreSafeWithADisk, ()) {
  const Policy policy = *random_disk_policy(kMostBytes);
  const std::vector<SavedId> order = *backward_orders();
  Play(policy, order).run(*actions());
}

RC_GTEST_PROP(OffloadSchedulerProperty, CommandsAreSafeIfDeviceAndDiskRefuse, ()) {
  const Policy policy = *random_disk_policy(kMostBytes);
  const std::vector<SavedId> order = *backward_orders();
  Play(policy, order, *rc::gen::arbitrary<std::vector<bool>>()).run(*actions());
}

RC_GTEST_PROP(OffloadSchedulerProperty, CommandsAreSafeIfTheDeviceRefuses, ()) {
  const Policy policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  const std::vector<SavedId> order = *backward_orders();
  Play(policy, order, *rc::gen::arbitrary<std::vector<bool>>()).run(*actions());
}

RC_GTEST_PROP(SchedulerProperty, SameCallsLeadToTheSameCommands, ()) {
  const Policy policy = *random_policy_of_any_scheduler();
  const std::vector<SavedId> order = *backward_orders();
  const std::vector<Action> script = *actions();
  Play first(policy, order);
  first.run(script);
  Play second(policy, order);
  second.run(script);
  RC_ASSERT(format_command_log(first.commands()) == format_command_log(second.commands()));
}

}  // namespace
}  // namespace offprof
