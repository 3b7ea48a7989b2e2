#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Id of a parameter group: a storage that is on the device only around its uses. It holds parameters,
/// gradients, an optimizer's state, or values that wait between layer slices. Counted from 0.
using ParameterGroupId = std::int32_t;

/// Use of a parameter group by an operator.
struct ParameterGroupUse {
  ParameterGroupId group = -1;
  bool changes = false;  ///< the operator writes to it

  bool operator==(const ParameterGroupUse&) const = default;
};

/// Executes the decisions of a ParameterScheduler.
class ParameterExecutor {
 public:
  virtual ~ParameterExecutor() = default;
  /// Allocates device memory for the group and starts to load its bytes.
  virtual void fetch(ParameterGroupId group) = 0;
  /// Makes the compute stream wait until the bytes are loaded.
  virtual void wait(ParameterGroupId group) = 0;
  /// Frees the group's device memory. `changed`: the device has written to it, so its bytes are saved first.
  virtual void evict(ParameterGroupId group, bool changed) = 0;
  /// Returns false if nobody holds the group's tensors any more, although it has not vanished.
  virtual bool is_held(ParameterGroupId /*group*/) const { return true; }
};

/// Decides which parameter groups are on the device. It uses neither times nor addresses, so that the same
/// step always takes the same memory.
///
/// The groups that an operator uses are on the device while it runs, whatever their size. Other groups may be
/// there too, as long as all together fit into `window_bytes`. The order of group uses in the learned step is
/// the forecast for every later step: groups are prefetched in that order, and to make room, the group whose
/// next use is farthest away is evicted (Belady's rule). Before a step is learned, groups are loaded when
/// they are used.
///
/// A group of a gradient, or of a value between slices, exists from `appear` to `vanish`; in between it is
/// like any other.
class ParameterScheduler {
 public:
  /// `executor` must outlive this object.
  ParameterScheduler(Bytes window_bytes, ParameterExecutor& executor)
      : window_bytes_(window_bytes), executor_(executor) {}

  /// Adds a group that does not exist yet.
  ParameterGroupId add(Bytes bytes);
  /// Makes the group exist: on the device, where it was computed.
  void appear(ParameterGroupId group);
  /// Makes the group exist off the device, where the executor has its bytes.
  void appear_saved(ParameterGroupId group);
  /// Ends the group's existence; the executor need not free anything.
  void vanish(ParameterGroupId group);

  /// Begins an operator that uses these groups, and loads them. Calls nest. If the executor throws, this call
  /// leaves nothing in use.
  void begin_use(std::span<const ParameterGroupUse> uses);
  /// Ends the operator.
  void end_use(std::span<const ParameterGroupUse> uses);
  /// Ends a failed operator: does not call the executor.
  void abandon_use(std::span<const ParameterGroupUse> uses) noexcept;

  /// Loads all existing groups, whatever the window, until the next end_step.
  void bring_all();
  /// Ends the step: no group may be in use, and all are evicted.
  void end_step();
  /// Makes the group uses of the step that ended last the forecast from now on.
  void learn();

  bool exists(ParameterGroupId group) const { return groups_[group].state != State::kGone; }
  bool is_on_device(ParameterGroupId group) const {
    return groups_[group].state == State::kHere || groups_[group].state == State::kComing;
  }
  Bytes bytes(ParameterGroupId group) const { return groups_[group].bytes; }
  Bytes window_bytes() const { return window_bytes_; }
  void set_window_bytes(Bytes bytes) { window_bytes_ = bytes; }
  Bytes device_bytes() const { return device_bytes_; }
  /// Returns the peak of the bytes that operators used at once.
  Bytes most_used_bytes() const { return most_used_bytes_; }

 private:
  enum class State : std::uint8_t { kGone, kAway, kComing, kHere };
  struct Group {
    Bytes bytes = 0;
    State state = State::kGone;
    bool changed = false;
    int uses = 0;                         ///< by operators that are running
    std::uint32_t wanted = 0;             ///< number of the last forecast pass that wanted it on the device
    std::vector<std::size_t> forecast{};  ///< its positions in forecast_
  };

  void use(const ParameterGroupUse& use);
  void bring(std::span<const ParameterGroupUse> uses);
  void fetch(ParameterGroupId group);
  void fetch_ahead();
  void make_room(Bytes bytes);
  void wait(ParameterGroupId group);
  void evict(ParameterGroupId group);
  void evict_here(ParameterGroupId group);
  ParameterGroupId last_used() const;
  std::size_t next_use(const Group& group) const;
  void trim();
  Bytes limit() const;

  Bytes window_bytes_;
  bool has_all_ = false;  ///< bring_all was called in this step
  ParameterExecutor& executor_;
  std::vector<Group> groups_;
  std::vector<ParameterGroupId> used_;         ///< since the last end_step
  std::vector<ParameterGroupId> used_before_;  ///< in the step before
  std::vector<ParameterGroupId> forecast_;
  std::size_t next_ = 0;      ///< position in forecast_ after the last use
  std::uint32_t wanted_ = 1;  ///< number of forecast passes
  Bytes device_bytes_ = 0;
  Bytes used_bytes_ = 0, most_used_bytes_ = 0;
};

}  // namespace offprof
