#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cli/advice/step_resizer.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/next_command.h"
#include "simulator/advisor/size_advice.h"

namespace offprof {

/// The setting of PyTorch's allocator for expandable segments.
inline constexpr const char* kExpandableSegments = "expandable_segments:True";

/// Memory of a recording on a virtual GPU: more than any step needs, so that steps that do not fit are
/// recorded.
inline constexpr const char* kAmpleMemory = "2TiB";

/// Records configurations of a program by runs of this executable, one process each; on a virtual GPU several
/// at a time. Its files are in a scratch folder.
class ChildRecorder : public SizedStepRecorder {
 public:
  /// `program`: see words_of_way. `is_script`: the program is a training script, whose modules can be
  /// checkpointed, but which cannot be configured otherwise. `progress` is called with the flags of each run.
  /// `resizer`: for configurations with a size; nullopt: there are none. `variables`: set in the environment
  /// of each run.
  ChildRecorder(std::vector<std::string> program, bool is_script, bool is_virtual,
                std::optional<StepResizer> resizer, std::function<void(const std::string&)> progress,
                Variables variables = {});

  std::vector<RecordedStep> existing() override { return {}; }
  /// Takes a recording of the step with nothing done, which need not be made again.
  void take_plain(Trace trace) { given_plain_ = std::move(trace); }

  bool configures_model() const override { return !is_script_; }
  bool configures_checkpointing() const override { return true; }
  bool configures_allocator() const override;
  std::vector<RecordedStep> record(const std::vector<Configuration>& configurations) override;
  std::optional<Metrics> confirm(const Way& way) override;
  std::int64_t present_size() const override { return resizer_->present_size(program_, *plain_); }
  std::size_t runs_at_once() const override;

  /// Returns the words of a `run` of the program in the configuration's size, which is known once the program
  /// was recorded.
  std::vector<std::string> program_of(const Configuration& configuration) const;

  /// Returns the environment variables that make the configuration.
  static Variables variables_of(const Configuration& configuration);

  /// Returns the trace of the step with nothing done; nullptr: not recorded yet.
  const Trace* plain_trace() const { return plain_.get(); }
  /// Returns why the last run that was to confirm a way failed; empty if none failed.
  const std::string& confirmation_failure() const { return confirmation_failure_; }
  /// Returns the notes of the last run that confirmed a way.
  const std::vector<std::string>& confirmed_notes() const { return confirmed_notes_; }

 private:
  Variables environment_of(const Configuration& configuration) const;
  void record_at_once(std::span<const Configuration> configurations, std::vector<RecordedStep>& recorded);
  std::vector<std::string> recording_words(const Configuration& configuration, const std::string& path) const;

  std::vector<std::string> program_;
  bool is_script_, is_virtual_;
  std::optional<StepResizer> resizer_;
  std::function<void(const std::string&)> progress_;
  Variables variables_;
  ScratchFolder folder_;
  std::shared_ptr<const Trace> plain_;
  std::optional<Trace> given_plain_;
  std::string confirmation_failure_;
  std::vector<std::string> confirmed_notes_;
};

}  // namespace offprof
