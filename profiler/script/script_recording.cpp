#include "profiler/script/script_recording.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <utility>

#include "engine/devices/factory/device_factory.h"
#include "engine/scheduler/command_log.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {

Device& device_of_process(const std::string& name, const Link& link_cap) {
  static auto* devices = new std::map<std::string, std::unique_ptr<Device>>;
  std::unique_ptr<Device>& device = (*devices)[name];
  if (!device) device = make_device(name, link_cap);
  return *device;
}

ScriptRecording::ScriptRecording(const std::string& request, Progress progress, CodeLocator locate)
    : process_(::getpid()),
      request_(parse_script_request(request, "request")),
      progress_(std::move(progress)),
      locate_(std::move(locate)),
      tracing_(StepTracing::of_device(request_.run.device)),
      device_(device_of_process(request_.run.device, request_.run.settings.link_cap.value_or(Link{}))) {
  if (request_.run.disk) device_.open_disk(*request_.run.disk);
  device_.prepare_cores(request_.run.threads);
  at::set_num_threads(request_.run.threads);
  start();
}

ScriptRecording::~ScriptRecording() {
  if (::getpid() != process_) static_cast<void>(session_.release());  // see ScriptSession::forget_in_child
}

void ScriptRecording::start() {
  session_ = std::make_unique<ScriptSession>(request_, device_, progress_, &tracing_, locate_);
}

void ScriptRecording::restart() {
  session_->abandon_step();
  session_.reset();
  start();
}

bool ScriptRecording::fail() {
  session_->abandon_step();
  const auto refusal = device_.take_out_of_memory();
  if (!refusal || !refusal->capacity_bytes || !session_->is_recorded()) return false;
  session_->result().refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes, {}};
  return true;
}

ScriptOutcome ScriptRecording::outcome() {
  const RunResult& result = session_->result();
  ScriptOutcome outcome;
  outcome.refusal = result.refusal;
  outcome.steps_with_other_commands = result.steps_with_other_commands;
  outcome.saved_by_user_hooks = tensors_saved_by_other_hooks();
  outcome.groups = session_->groups();
  outcome.skipped_steps = session_->skipped_steps();
  outcome.compared = session_->compared();
  if (!result.refusal) {
    const TraceSteps steps(result.trace);
    const Policy& policy = result.trace.policy;
    outcome.has_replayed_commands = replay_commands(steps.step(policy), policy) == result.commands;
  }
  return outcome;
}

void ScriptRecording::write() {
  if (::getpid() != process_)
    throw input_error(
        fmt::format("process {} is a fork of process {}, which records: it must not write the recording too",
                    ::getpid(), process_),
        "End the forked process before the recording ends, or fork before the recording begins");
  RunResult& result = session_->result();
  result.trace.tool_version = request_.tool_version;
  result.trace.argv = request_.argv;
  result.trace.environment.kernel_times = request_.kernel_times;
  const std::string trace_path = result.refusal ? refused_trace_path(request_) : request_.trace_path;
  if (!trace_path.empty()) write_trace(trace_path, result.trace);
  if (!request_.commands_path.empty() && !result.refusal)
    write_file(request_.commands_path, format_command_log(result.commands));
  if (!request_.outcome_path.empty()) write_file(request_.outcome_path, format_script_outcome(outcome()));
}

void ScriptRecording::write_error(const Error& error) const {
  ScriptOutcome outcome;
  outcome.error = error;
  write_file(request_.outcome_path, format_script_outcome(outcome));
}

}  // namespace offprof
