#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "simulator/advisor/advice.h"
#include "simulator/advisor/advise.h"
#include "simulator/advisor/prepared_step.h"

namespace offprof {

/// The recordings of a search for the best way. No configuration is recorded twice.
class RecordedSteps {
 public:
  using Steps = std::vector<std::shared_ptr<PreparedStep>>;

  /// `recorder` must outlive the object.
  explicit RecordedSteps(StepRecorder& recorder) : recorder_(recorder) {}

  /// Returns the steps in the order of `configurations`; null: it could not be recorded.
  Steps record(const std::vector<Configuration>& configurations);
  /// Adds a recording. Returns null, and notes the reason, if the configuration could not be recorded.
  std::shared_ptr<PreparedStep> add(const RecordedStep& recorded);
  /// Returns the step of a configuration; null: it was not recorded.
  std::shared_ptr<PreparedStep> find(const Configuration& configuration) const;

  /// Returns the steps of the first `most` configurations of `ranked`, which is sorted, and of up to
  /// `most_near` others with a way that is not within the goal's limits, but faster than the first way or
  /// next to one that is not within them either. Of the latter it leaves out those that are `done`.
  Steps nearest(const std::vector<const Way*>& ranked, std::size_t most, std::size_t most_near,
                const std::function<bool(const PreparedStep&)>& done) const;

  std::size_t size() const { return steps_.size(); }
  const std::vector<UnrecordedConfiguration>& unrecorded() const { return unrecorded_; }

 private:
  bool has_failed(const Configuration& configuration) const;

  StepRecorder& recorder_;
  Steps steps_;
  std::vector<UnrecordedConfiguration> unrecorded_;
};

}  // namespace offprof
