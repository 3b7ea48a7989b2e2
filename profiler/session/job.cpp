#include "profiler/session/job.h"

#include <utility>

#include "profiler/recording/tracing_cost.h"
#include "profiler/stages/measure_policy.h"
#include "profiler/stages/record_run.h"
#include "profiler/stages/step_error.h"

namespace offprof {

std::unique_ptr<Job> prepare_job(RunRequest request, Device& device, const Progress& progress,
                                 StepTracing* tracing) {
  request = with_needs_of_fallback(std::move(request));
  auto transforms = transforms_of(request);
  auto loaded = load_for(request, device, progress);
  Trace& trace = loaded->trace;
  request.policy = trace.policy;
  ParameterOffloader* const offloader = loaded->offloader ? &*loaded->offloader : nullptr;
  auto trainer = std::make_unique<Trainer>(loaded->model, device, trace.settings, tracing, offloader);
  const IdleAtEnd idle_at_end(device);
  warm_up(*loaded, *trainer, device, progress);

  StepSource source{device,
                    progress,
                    [trainer = trainer.get()] { return trainer->residents(); },
                    {},
                    budget_of_model(device.is_virtual())};
  if (request.calibration == CalibrationEffort::kBrief)
    source.budget.calibration = brief_calibration(!source.device.torch_device().is_cpu());
  if (offloader != nullptr) source.parameter_host_bytes = [offloader] { return offloader->host_bytes(); };
  StepGuide recorded = carry_out(record_run(source, request, transforms, offloader != nullptr, trace),
                                 [&](const StepOrder& order) { return trainer->run(order); });
  return std::make_unique<Job>(std::move(source), std::move(loaded), std::move(trainer), std::move(recorded),
                               std::move(transforms));
}

Job::Job(StepSource source, std::unique_ptr<LoadedModel> loaded, std::unique_ptr<Trainer> trainer,
         StepGuide recorded, std::vector<std::shared_ptr<const Transform>> transforms)
    : source_(std::move(source)),
      loaded_(std::move(loaded)),
      trainer_(std::move(trainer)),
      steps_(source_, loaded_->trace, std::move(recorded), std::move(transforms)),
      reference_(loaded_->model.parameter_names, [this] { return trainer_->gradients(std::nullopt, {}); }),
      idle_at_end_(source_.device) {}

GradientCheck Job::check_gradients(const Policy& policy) {
  if (source_.device.is_virtual()) return {"not applicable"};
  const StepGuide guide = steps_.guide_for(policy);
  return reference_.check(trainer_->gradients(policy, guide), PolicySteps::loses_something(guide));
}

std::vector<StepResult> Job::train(const Policy& policy, int steps, Recording recording) {
  return carry_out(steps_.train(policy, steps, recording),
                   [this](const StepOrder& order) { return trainer_->run(order); });
}

void Job::measure(const RunRequest& request, StepTracing* tracing, RunResult& result) {
  const std::function<TracingCost()> cost = [&] { return tracing_cost(request.policy); };
  carry_out(measure_policy(steps_, request, source_.device, tracing, cost, result),
            [this](const StepOrder& order) { return trainer_->run(order); });
}

TracingCost Job::tracing_cost(const Policy& policy) {
  source_.progress("measuring the cost of tracing");
  steps_.set_limits(policy);
  const StepGuide guide = steps_.guide_for(policy);
  const TracingCost cost = measure_tracing_cost(
      {[&] { return trainer_->step(policy, guide, Recording::kNone).step_time_ns; },
       [&] {
         return trainer_->run({.policy = policy, .guide = guide, .traced = TraceDetail::kStreams})
             .step_time_ns;
       },
       [&] {
         return trainer_->run({.policy = policy, .guide = guide, .traced = TraceDetail::kAll}).step_time_ns;
       },
       [&] {
         return trainer_->run({.policy = policy, .guide = guide, .recording = Recording::kTimeline})
             .step_time_ns;
       },
       [&] { return trainer_->step(policy, guide, Recording::kTimeline).step_time_ns; }});
  lift_limits(source_.device);
  return cost;
}

}  // namespace offprof
