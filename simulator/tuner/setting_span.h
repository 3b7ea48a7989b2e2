#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "simulator/replay.h"
#include "simulator/step.h"

namespace offprof {

/// From `begin` to below `end`.
struct LimitRange {
  static constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
  std::int64_t begin = 0;
  std::int64_t end = kNoEnd;

  bool operator==(const LimitRange&) const = default;
};

/// The settings around a replayed one, with everything else as it was, that have the very same consequences.
struct SettingSpans {
  LimitRange stash;   ///< the policy's stash count or, where it has none, its stash bytes
  LimitRange window;  ///< the policy's prefetch bytes

  bool operator==(const SettingSpans&) const = default;
};

/// Watches a replay under the offload scheduler. It notes the device's peak as it would be if a reload went
/// back to the tensor's own storage, wherever that or another copy of it is there: not above the peak, and
/// mostly the same. It also notes how far each limit was from deciding otherwise: the
/// scheduler only ever compares a limit with what would be held, so between the largest sum that it let in
/// and the smallest that it refused any limit decides alike.
class SpanListener final : public ReplayListener {
 public:
  /// The policy has a stash count or stash bytes, not both. All that is passed must outlive it.
  SpanListener(const Step& step, const Policy& policy);

  SettingSpans spans() const { return spans_; }
  Bytes least_peak() const { return least_peak_; }
  std::int64_t copies_out() const { return static_cast<std::int64_t>(copies_.size()); }
  std::int64_t copies_in() const { return static_cast<std::int64_t>(copied_in_.size()); }
  /// Those copies in that backward asked for.
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
  std::vector<std::int32_t> held_;  ///< by storage of the program: it and its copies that are there
  std::vector<std::int32_t>
      copied_in_;  ///< of a reload's storage, counted from the program's: the tensor's own
  Bytes live_bytes_, least_peak_;
  bool counts_;                  ///< the stash is limited by a count
  std::vector<CopyId> copy_of_;  ///< by saved tensor; -1: kept, or not saved yet
  std::vector<Copy> copies_;
  std::vector<std::int32_t> order_position_;  ///< by saved tensor: in the backward order; -1: not in it
  std::size_t next_in_order_ = 0;
  std::int64_t stash_weight_ = 0;
  Bytes ahead_bytes_ = 0;
  std::int64_t asked_copies_in_ = 0;
  Event event_;                ///< that is being replayed
  CopyId made_in_event_ = -1;  ///< the copy out that this event began
  SettingSpans spans_;
};

}  // namespace offprof
