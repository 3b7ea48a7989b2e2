#include "profiler/script/script_recording.h"

#include <ATen/Parallel.h>

#include <utility>

#include "engine/devices/factory/device_factory.h"
#include "engine/scheduler/command_log.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {

ScriptRecording::ScriptRecording(const std::string& request, Progress progress)
    : request_(parse_script_request(request, "request")),
      progress_(std::move(progress)),
      tracing_(StepTracing::of_device(request_.run.device)),
      device_(make_device(request_.run.device, request_.run.settings.link_cap.value_or(Link{}))) {
  if (request_.run.disk) device_->open_disk(*request_.run.disk);
  device_->prepare_cores(request_.run.threads);
  at::set_num_threads(request_.run.threads);
  start();
}

void ScriptRecording::start() {
  session_ = std::make_unique<ScriptSession>(request_, *device_, progress_, &tracing_);
}

void ScriptRecording::restart() {
  session_->abandon_step();
  session_.reset();
  start();
}

bool ScriptRecording::fail() {
  session_->abandon_step();
  const auto refusal = device_->take_out_of_memory();
  if (!refusal || !refusal->capacity_bytes || !session_->is_recorded()) return false;
  session_->result().refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes, {}};
  return true;
}

void ScriptRecording::write() {
  RunResult& result = session_->result();
  Trace& trace = result.trace;
  trace.tool_version = request_.tool_version;
  trace.argv = request_.argv;
  trace.environment.kernel_times = request_.kernel_times;
  ScriptOutcome outcome;
  outcome.refusal = result.refusal;
  outcome.steps_with_other_commands = result.steps_with_other_commands;
  outcome.saved_by_user_hooks = tensors_saved_by_other_hooks();
  outcome.groups = session_->groups();
  outcome.skipped_steps = session_->skipped_steps();
  outcome.compared = session_->compared();
  if (!result.refusal) {
    const TraceSteps steps(trace);
    outcome.has_replayed_commands = replay_commands(steps.step(trace.policy), trace.policy) == result.commands;
    if (!request_.commands_path.empty())
      write_file(request_.commands_path, format_command_log(result.commands));
  }
  write_trace(result.refusal ? refused_trace_path(request_) : request_.trace_path, trace);
  write_file(request_.outcome_path, format_script_outcome(outcome));
}

void ScriptRecording::write_error(const Error& error) const {
  ScriptOutcome outcome;
  outcome.error = error;
  write_file(request_.outcome_path, format_script_outcome(outcome));
}

}  // namespace offprof
