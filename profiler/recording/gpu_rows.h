#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>

#include "profiler/recording/step_result.h"
#include "profiler/recording/work_causes.h"
#include "traces/model/copy_record.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Rows of one step for a timeline, from the tracer of the GPU: every kernel, copy and memset on its stream
/// and every call on its thread, on the clock of the step's marks, with the cause of each. Empty if nothing
/// was traced.
class GpuRows {
 public:
  /// `first_id` is smaller than all external ids of this step.
  GpuRows(const StepResult& step, std::int64_t first_id);

  /// Returns the external id of the operator that begins with that event; 0: nothing was done for it.
  std::int64_t external_id(std::size_t event) const;

  struct SeenCopy {
    std::size_t work = 0;  ///< its index in GpuActivity::work
    std::uint32_t stream = 0;
    Nanoseconds begin_ns = 0;
  };
  /// Returns the traced copy that matches the copy timed by events, each at most once; nullopt: there is
  /// none.
  std::optional<SeenCopy> match(const CopyRecord& record);

  /// Adds the rows to the timeline, with times counted from `origin`.
  void add_to(Timeline& timeline, Nanoseconds origin) const;

 private:
  Nanoseconds moment(Nanoseconds tracer_time) const { return tracer_time + *offset_; }
  const CopyCommand* copy_command(const StreamWork& work) const;
  std::int64_t cause_id(std::uint32_t correlation) const;
  GpuSpan span_of(std::size_t index) const;
  GpuSpan span_of(const CudaCall& call) const;
  void find_copies();

  const StepResult& step_;
  const GpuActivity& activity_;
  std::int64_t first_id_;
  std::optional<Nanoseconds> offset_;  ///< nullopt: there is nothing to show
  WorkCauses causes_;
  std::unordered_set<std::size_t> ops_with_work_;
  std::map<CopyId, SavedId> tensors_;                                        ///< by their copy
  std::map<std::pair<CopyDirection, CopyId>, std::deque<SeenCopy>> copies_;  ///< not matched yet
  std::map<std::size_t, Nanoseconds> leads_;                                 ///< of matched work
  std::map<std::uint32_t, std::uint32_t> threads_;                           ///< row of each thread
};

}  // namespace offprof
