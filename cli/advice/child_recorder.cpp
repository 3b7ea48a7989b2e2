#include "cli/advice/child_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "cli/advice/failure_reason.h"
#include "cli/plugin/foreground_command.h"
#include "cli/reports/advice/way_words.h"
#include "cli/reports/tuned_configuration.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

/// Steps for which predictions follow the caching allocator. What it reserves may grow for some steps,
/// until the blocks that a step leaves lie as the step found them: for seven in a model of 8 layers with
/// expandable segments.
constexpr int kFollowedSteps = 24;

/// Reads and removes the trace of a recording.
Trace taken_trace(const std::string& path) {
  Trace trace = read_trace(path);
  std::filesystem::remove(path);
  return trace;
}

/// Returns the recorded step as predictions take it.
RecordedStep followed(const Configuration& configuration, Trace trace) {
  trace.settings.device_memory_bytes.reset();
  trace.settings.steps = kFollowedSteps;
  return {configuration, std::make_shared<Trace>(std::move(trace)), {}, {}};
}

void add(std::vector<std::string>& words, const std::vector<std::string>& options) {
  words = with_options(std::move(words), options);
}

}  // namespace

ChildRecorder::ChildRecorder(std::vector<std::string> program, bool is_script, bool is_virtual,
                             std::optional<StepResizer> resizer,
                             std::function<void(const std::string&)> progress, Variables variables)
    : program_(std::move(program)),
      is_script_(is_script),
      is_virtual_(is_virtual),
      resizer_(std::move(resizer)),
      progress_(std::move(progress)),
      variables_(std::move(variables)) {}

bool ChildRecorder::configures_allocator() const {
  return is_virtual_ && std::getenv(kAllocatorVariable) == nullptr;
}

std::vector<std::string> ChildRecorder::program_of(const Configuration& configuration) const {
  return configuration.size ? resizer_->resized(program_, *plain_, *configuration.size) : program_;
}

/// Runs on a virtual GPU do not disturb each other's times. Each takes a core, and memory for a trace.
std::size_t ChildRecorder::runs_at_once() const {
  constexpr unsigned kMostAtOnce = 4;
  return is_virtual_ ? std::clamp(std::thread::hardware_concurrency(), 1U, kMostAtOnce) : 1;
}

std::vector<RecordedStep> ChildRecorder::record(const std::vector<Configuration>& configurations) {
  std::vector<RecordedStep> recorded;
  if (given_plain_ && !configurations.empty() && configurations.front() == Configuration{}) {
    recorded.push_back(followed({}, *std::exchange(given_plain_, std::nullopt)));
    plain_ = recorded.front().trace;
  }
  for (std::size_t first = recorded.size(); first < configurations.size(); first += runs_at_once()) {
    const std::size_t count = std::min(runs_at_once(), configurations.size() - first);
    record_at_once(std::span(configurations).subspan(first, count), recorded);
    if (plain_ == nullptr) plain_ = recorded.front().trace;
  }
  return recorded;
}

void ChildRecorder::record_at_once(std::span<const Configuration> configurations,
                                   std::vector<RecordedStep>& recorded) {
  std::vector<ProgramRun> runs;
  const auto path_of = [&](std::size_t i) { return folder_.file(fmt::format("trace{}.json", i)); };
  const auto errors_of = [&](std::size_t i) { return folder_.file(fmt::format("errors{}.txt", i)); };
  for (std::size_t i = 0; i < configurations.size(); ++i) {
    progress_("recording " + name_of(configurations[i]));
    runs.push_back(
        {recording_words(configurations[i], path_of(i)), environment_of(configurations[i]), errors_of(i)});
  }
  const std::vector<int> statuses = run_this_program(runs);
  for (std::size_t i = 0; i < configurations.size(); ++i)
    recorded.push_back(
        statuses[i] == 0
            ? followed(configurations[i], taken_trace(path_of(i)))
            : RecordedStep{
                  configurations[i], nullptr, failure_reason(read_file(errors_of(i)), statuses[i]), {}});
}

std::vector<std::string> ChildRecorder::recording_words(const Configuration& configuration,
                                                        const std::string& path) const {
  std::vector<std::string> words = program_of(configuration);
  add(words, configuration_words(with_configuration({}, configuration)));
  add(words, {"--policy", "keep", "--transforms", "recompute", "-q", "-o", path});
  // Predictions do not need the timeline of modelled times.
  if (is_virtual_) add(words, {"--no-timeline", "--device-memory", kAmpleMemory});
  // One measured step suffices: predictions follow the allocator through kFollowedSteps.
  if (!is_script_) add(words, {"--steps", "1"});
  return words;
}

std::optional<Metrics> ChildRecorder::confirm(const Way& way) {
  const std::string policy = folder_.file("policy.json"), path = folder_.file("confirmed.json"),
                    errors = folder_.file("errors.txt");
  write_file(policy, format_policy_file(policy_file_of(way)));
  std::vector<std::string> words = words_of_way(program_of(way.configuration), way, policy);
  add(words, {"-q", "-o", path});
  if (const int status = run_this_program({{words, environment_of(way.configuration), errors}}).front();
      status != 0) {
    confirmation_failure_ = failure_reason(read_file(errors), status);
    return std::nullopt;
  }
  Trace confirmed = read_trace(path);
  confirmed_notes_ = std::move(confirmed.notes);
  return confirmed.metrics;
}

Variables ChildRecorder::environment_of(const Configuration& configuration) const {
  Variables variables = variables_of(configuration);
  variables.insert(variables_.begin(), variables_.end());
  return variables;
}

Variables ChildRecorder::variables_of(const Configuration& configuration) {
  if (!configuration.expands_segments) return {};
  return {{kAllocatorVariable, kExpandableSegments}};
}

}  // namespace offprof
