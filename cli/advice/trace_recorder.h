#pragma once

#include <memory>
#include <string>
#include <vector>

#include "simulator/advisor/advise.h"

namespace offprof {

/// Existing traces of one program, each in another configuration, in place of recordings. The first one is
/// the step with nothing done.
class TraceRecorder : public StepRecorder {
 public:
  /// Reads the traces; there must be at least one. Throws Error (input) if one cannot be read, lost records,
  /// has no link, or was recorded with another model, inputs or device than the first.
  explicit TraceRecorder(const std::vector<std::string>& paths);

  std::vector<RecordedStep> existing() override { return steps_; }
  bool configures_model() const override { return false; }
  bool configures_allocator() const override { return false; }
  std::vector<RecordedStep> record(const std::vector<Configuration>& configurations) override;
  std::optional<Metrics> confirm(const Way&) override { return std::nullopt; }

  /// Returns the trace with that configuration, which must be one of theirs.
  const Trace& trace_of(const Configuration& configuration) const;
  const Trace& plain_trace() const { return *steps_.front().trace; }

 private:
  std::vector<RecordedStep> steps_;
};

}  // namespace offprof
