#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/advice/step_resizer.h"
#include "cli/plugin/scratch_folder.h"
#include "simulator/advisor/size_advice.h"

namespace offprof {

/// The environment variable of PyTorch's allocator settings, and the setting for expandable segments.
inline constexpr const char* kAllocatorVariable = "PYTORCH_CUDA_ALLOC_CONF";
inline constexpr const char* kExpandableSegments = "expandable_segments:True";

/// Records configurations of a program by runs of this executable, one process each. Its files are in a
/// scratch folder.
class ChildRecorder : public SizedStepRecorder {
 public:
  /// `program`: see words_of_way. `is_script`: the program is a training script, whose model offprof cannot
  /// configure. `progress` is called with the flags of each run.
  /// `resizer`: for configurations with a size; nullopt: there are none.
  ChildRecorder(std::vector<std::string> program, bool is_script, bool is_virtual,
                std::optional<StepResizer> resizer, std::function<void(const std::string&)> progress);

  std::vector<RecordedStep> existing() override { return {}; }
  bool configures_model() const override { return !is_script_; }
  bool configures_allocator() const override;
  std::vector<RecordedStep> record(const std::vector<Configuration>& configurations) override;
  std::optional<Metrics> confirm(const Way& way) override;
  std::int64_t present_size() const override { return resizer_->present_size(program_, *plain_); }

  /// Returns the words of a `run` of the program in the configuration's size, which is known once the program
  /// was recorded.
  std::vector<std::string> program_of(const Configuration& configuration) const;

  /// Returns the trace of the step with nothing done; nullptr: not recorded yet.
  const Trace* plain_trace() const { return plain_.get(); }
  /// Returns why the last run that was to confirm a way failed; empty if none failed.
  const std::string& confirmation_failure() const { return confirmation_failure_; }

 private:
  RecordedStep record(const Configuration& configuration);
  /// Runs offprof with these words. Returns its exit status; its standard error is in `errors_`. Throws
  /// EndedBySignal if it was interrupted.
  int run(const std::vector<std::string>& words, bool expands_segments) const;

  std::vector<std::string> program_;
  bool is_script_, is_virtual_;
  std::optional<StepResizer> resizer_;
  std::function<void(const std::string&)> progress_;
  ScratchFolder folder_;
  std::string errors_ = folder_.file("errors.txt");
  std::shared_ptr<const Trace> plain_;
  std::string confirmation_failure_;
};

}  // namespace offprof
