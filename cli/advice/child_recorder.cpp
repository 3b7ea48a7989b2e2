#include "cli/advice/child_recorder.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
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

/// Memory of a recording on a virtual GPU: more than any step needs, so that steps that do not fit are
/// recorded.
constexpr const char* kAmpleMemory = "2TiB";

void add(std::vector<std::string>& words, const std::vector<std::string>& options) {
  words.insert(std::ranges::find(words, "--"), options.begin(), options.end());
}

}  // namespace

ChildRecorder::ChildRecorder(std::vector<std::string> program, bool is_script, bool is_virtual,
                             std::optional<StepResizer> resizer,
                             std::function<void(const std::string&)> progress)
    : program_(std::move(program)),
      is_script_(is_script),
      is_virtual_(is_virtual),
      resizer_(std::move(resizer)),
      progress_(std::move(progress)) {}

bool ChildRecorder::configures_allocator() const {
  return is_virtual_ && std::getenv(kAllocatorVariable) == nullptr;
}

std::vector<std::string> ChildRecorder::program_of(const Configuration& configuration) const {
  return configuration.size ? resizer_->resized(program_, *plain_, *configuration.size) : program_;
}

std::vector<RecordedStep> ChildRecorder::record(const std::vector<Configuration>& configurations) {
  std::vector<RecordedStep> recorded;
  for (const Configuration& configuration : configurations) {
    recorded.push_back(record(configuration));
    if (plain_ == nullptr) plain_ = recorded.back().trace;
  }
  return recorded;
}

RecordedStep ChildRecorder::record(const Configuration& configuration) {
  std::vector<std::string> words = program_of(configuration);
  const std::string path = folder_.file("trace.json");
  add(words, configuration_words(with_configuration({}, configuration)));
  progress_("recording " + name_of(configuration));
  add(words, {"--policy", "keep", "--transforms", "recompute", "-q", "-o", path});
  if (is_virtual_) add(words, {"--device-memory", kAmpleMemory});
  // One measured step suffices: predictions follow the allocator through as many as a run measures.
  if (!is_script_) add(words, {"--steps", "1"});
  if (const int status = run(words, configuration.expands_segments); status != 0)
    return {configuration, nullptr, failure_reason(read_file(errors_), status), {}};
  auto trace = std::make_shared<Trace>(read_trace(path));
  std::filesystem::remove(path);
  trace->settings.device_memory_bytes.reset();
  if (!is_script_) trace->settings.steps = RunSettings{}.steps;
  return {configuration, std::move(trace), {}, {}};
}

std::optional<Metrics> ChildRecorder::confirm(const Way& way) {
  const std::string policy = folder_.file("policy.json"), path = folder_.file("confirmed.json");
  write_file(policy, format_policy_file(policy_file_of(way)));
  std::vector<std::string> words = words_of_way(program_of(way.configuration), way, policy);
  add(words, {"-q", "-o", path});
  if (const int status = run(words, way.configuration.expands_segments); status != 0) {
    confirmation_failure_ = failure_reason(read_file(errors_), status);
    return std::nullopt;
  }
  return read_trace(path).metrics;
}

int ChildRecorder::run(const std::vector<std::string>& words, bool expands_segments) const {
  std::map<std::string, std::string> variables;
  if (expands_segments) variables[kAllocatorVariable] = kExpandableSegments;
  return run_this_program(words, variables, errors_);
}

}  // namespace offprof
