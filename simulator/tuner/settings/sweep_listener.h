#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"

namespace offprof {

/// Watches a replay for the bounds of a sweep. It notes the copies, and the device peak that the replay would
/// have if each reload went back to the tensor's own storage, wherever that or another copy of it is on the
/// device. That peak does not exceed the real one and usually equals it.
class SweepListener final : public ReplayListener {
 public:
  /// `step` must outlive the object.
  explicit SweepListener(const Step& step);

  Bytes least_peak() const { return least_peak_; }
  std::int64_t copies_out() const { return copies_out_; }
  std::int64_t copies_in() const { return copies_in_; }
  /// Returns the number of those copies in whose tensors backward has unpacked.
  std::int64_t asked_copies_in() const { return asked_copies_in_; }

  void on_allocate(std::int32_t storage, Bytes bytes) override;
  void on_free(std::int32_t storage) override;

  void on_absent(std::int32_t storage) override;
  void on_carried(const CarriedCopy& copy, std::int32_t storage) override;
  void on_event(std::size_t index, Nanoseconds now) override;
  void on_command(const Command& command, Nanoseconds now) override;
  void on_placement(SavedId tensor, const PackDecision& decision) override;

 private:
  /// A storage of the replay that the step program does not have: of a reload, or of a recomputation.
  struct Added {
    std::int32_t own = -1;  ///< the reloaded tensor's own storage; -1: of a recomputation
    Bytes bytes = 0;
  };

  void add_live(Bytes bytes);

  const Step& step_;
  std::vector<std::int32_t> held_;  ///< by storage of the step program: live storages, its copies included
  std::vector<Added> added_;        ///< counted from the end of the step program's storages
  std::int32_t comes_in_ = -1;      ///< own storage of the copy in whose storage is allocated next; -1: none
  Bytes live_bytes_, least_peak_;
  std::vector<CopyId> copy_of_;   ///< by saved tensor; -1: kept, or not saved yet
  std::vector<bool> is_unasked_;  ///< by copy: it was copied in, but not unpacked since
  std::int64_t copies_out_ = 0, copies_in_ = 0, asked_copies_in_ = 0;
};

}  // namespace offprof
