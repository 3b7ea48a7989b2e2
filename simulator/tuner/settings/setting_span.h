#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"

namespace offprof {

/// The limits from `begin` to below `end`.
struct LimitRange {
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = kNoEnd;

  bool operator==(const LimitRange&) const = default;
};

/// The settings around a replayed one that have exactly the same effects, all other fields being equal.
struct SettingSpans {
  LimitRange stash;   ///< the policy's stash count or, where it has none, its stash bytes
  LimitRange window;  ///< the policy's prefetch bytes

  bool operator==(const SettingSpans&) const = default;
};

/// Watches a replay under the offload scheduler and notes two things. First, the device peak that the replay
/// would have if each reload went back to the tensor's own storage, wherever that or another copy of it is on
/// the device. It does not exceed the peak and usually equals it. Second, how far each limit was from another
/// decision. The scheduler only compares a limit with the sum that would be held, so all limits between the
/// largest accepted sum and the smallest refused one lead to the same decisions.
class SpanListener final : public ReplayListener {
 public:
  /// The policy must have a stash count or stash bytes, not both. All arguments must outlive the object.
  SpanListener(const Step& step, const Policy& policy);

  SettingSpans spans() const { return spans_; }
  Bytes least_peak() const { return least_peak_; }
  std::int64_t copies_out() const { return static_cast<std::int64_t>(copies_.size()); }
  std::int64_t copies_in() const { return static_cast<std::int64_t>(copied_in_.size()); }
  /// Returns the number of those copies in whose tensors backward has unpacked.
  std::int64_t asked_copies_in() const { return asked_copies_in_; }

  void on_allocate(std::int32_t storage, Bytes bytes) override;
  void on_free(std::int32_t storage) override;

  void on_event_begin(std::size_t index, Nanoseconds now) override;
  void on_event(std::size_t index, Nanoseconds now) override;
  void on_command(const Command& command, Nanoseconds now) override;
  void on_placement(SavedId tensor, const PackDecision& decision) override;

 private:
  struct Copy {
    Bytes bytes = 0;
    int users = 1;
    bool on_device = true;
    bool stashed = true;
    bool ahead = false;
  };

  static void let_in(LimitRange& span, std::int64_t sum) { span.begin = std::max(span.begin, sum); }
  static void refuse(LimitRange& span, std::int64_t sum) { span.end = std::min(span.end, sum); }
  std::int64_t weight(Bytes bytes) const { return counts_ ? 1 : bytes; }

  void enter_stash(const Command& command);
  void leave_stash(CopyId id);
  void not_ahead(CopyId id);
  void drop(const Command& command);
  void copy_in(const Command& command);
  void look_ahead(SavedId tensor);
  bool is_reloadable(SavedId tensor) const;
  void release(SavedId tensor);

  std::int32_t own_storage(std::int32_t storage) const;

  const Step& step_;
  std::vector<std::int32_t> held_;  ///< by storage of the step program: live storages, its copies included
  /// By storage of a reload, counted from the end of the step program's storages: the tensor's own storage.
  std::vector<std::int32_t> copied_in_;
  Bytes live_bytes_, least_peak_;
  bool counts_;                  ///< true: the stash is limited by a count
  std::vector<CopyId> copy_of_;  ///< by saved tensor; -1: kept, or not saved yet
  std::vector<Copy> copies_;
  std::vector<std::int32_t> order_position_;  ///< by saved tensor: index in the backward order; -1: none
  std::size_t next_in_order_ = 0;
  std::int64_t stash_weight_ = 0;
  Bytes ahead_bytes_ = 0;
  std::int64_t asked_copies_in_ = 0;
  Event event_;                ///< the event that is being replayed
  CopyId made_in_event_ = -1;  ///< the copy out that this event began
  SettingSpans spans_;
};

}  // namespace offprof
