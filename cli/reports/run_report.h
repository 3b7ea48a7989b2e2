#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/tables/tracing_text.h"
#include "cli/terminal/terminal.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "profiler/plugin/script_io.h"
#include "traces/analysis/figures.h"
#include "traces/base/time_range.h"
#include "traces/model/gradient_error.h"
#include "traces/model/ledger.h"
#include "traces/model/metrics.h"

namespace offprof {

/// Result of `offprof run`.
struct RunReport {
  StepSummary run;  ///< the settings and measurements of the run
  /// The prediction of `tune` if the policy comes from there; else the result of a replay of this run's own
  /// step.
  Metrics predicted;
  bool predicted_by_tune = false;
  /// The replay of this run's step without offloading; nullopt: the policy itself offloads nothing.
  std::optional<Metrics> without_offloading;
  /// Keys of exact figures (memory, copied bytes, the command log) in which the two differ. Empty unless
  /// offprof is wrong, or a warning says that the prediction for this setting may be inexact.
  std::vector<std::string> inexact;
  std::string gradients;  ///< as in Trace, like gradient_errors
  std::vector<GradientError> gradient_errors;
  std::vector<std::string> notes;       ///< from the trace; printed as warnings in text
  std::optional<TimeRange> step_range;  ///< of the modelled step time; nullopt: measured, or not known
  std::vector<std::string> warnings;    ///< about the prediction; printed before the report in text
  Ledger ledger;
  bool checked_streams = false;
  std::vector<StreamHazard> hazards;
  std::string trace_path;  ///< empty: no trace was written
  StepSize step_size{};
  std::optional<ScriptOutcome> script{};  ///< of a training script; nullopt: a TorchScript module
  std::vector<std::string> argv;          ///< the command line, program name first
};

nlohmann::ordered_json to_json(const RunReport& report);
std::string to_text(const RunReport& report, const Page& page);
/// Returns the text but for the line that says what to do next.
std::string text_without_next(const RunReport& report, const Page& page);
/// Returns the line that says what to do next.
std::string next_text(const RunReport& report);
/// Returns whether the memory is as predicted.
LabelledLine memory_verdict(const RunReport& report);

/// Returns the keys of memory and copied bytes that differ, among those that a replay computes.
std::vector<std::string> inexact_keys(const Metrics& measured, const Metrics& predicted);

/// Returns in words how the figure of a key differs: `device_peak_bytes differs: 3.00 MiB measured, 2.00 MiB
/// predicted`.
std::string difference_text(const std::string& key, const Metrics& measured, const Metrics& predicted);

/// Returns true if the key's figure may differ between two processes on a real GPU, and differs by at most
/// 5 %. These are the bytes that PyTorch's allocator has allocated and reserved: among free blocks of one
/// size it takes the one with the lowest address, and the GPU's driver chooses the addresses anew in each
/// process.
bool may_differ_by_addresses(const std::string& key, const Metrics& measured, const Metrics& predicted);

}  // namespace offprof
