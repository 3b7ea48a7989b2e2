#include "profiler/run_job.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>
#include <ATen/core/Generator.h>
#include <fmt/format.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>
#include <torch/version.h>

#include <optional>
#include <utility>

#include "engine/model.h"
#include "engine/model_device.h"
#include "engine/torch_error.h"
#include "engine/weightless.h"
#include "profiler/calibration.h"
#include "profiler/gradient_check.h"
#include "profiler/interleaved.h"
#include "profiler/measured.h"
#include "profiler/program_builder.h"
#include "profiler/program_times.h"
#include "profiler/timeline_builder.h"
#include "profiler/trainer.h"
#include "traces/calibration.h"
#include "traces/error.h"
#include "traces/fingerprint.h"
#include "traces/policy_io.h"

namespace offprof {
namespace {

/// Enough for a median that one disturbance does not move.
constexpr int kKeepPasses = 5;
/// Likewise of a program that is another where tensors come back dense.
constexpr int kDensePasses = 3;
/// Where the cores move meanwhile, what offloading costs is measured anew.
constexpr int kCalibrations = 3;
/// Steps in the trace's timeline. They come after the measured ones, since recording takes time.
constexpr int kStepsShown = 2;
/// Recording makes steps longer, but not so much.
constexpr double kLeastFactor = 0.5;

/// Without this, the graph executor fuses operators into subgraphs from the second step on, and those ask for
/// all their saved tensors at once.
void turn_graph_optimisation_off() {
  torch::jit::setGraphExecutorOptimize(false);
  torch::jit::getProfilingMode() = false;
}

/// Every tensor copied on its own and brought back dense, as TRL does it.
Policy dense_offload_all() {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = 0;
  policy.stash_count = 0;
  return policy;
}

/// A model loaded and recorded on a device, ready for steps under any policy.
class Job {
 public:
  Job(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing = nullptr)
      : request_(request), device_(device), progress_(progress) {
    load();
    trainer_.emplace(model_, device_, trace_.settings, tracing);
    record();
  }

  /// The model, its environment and its program; nothing measured.
  const Trace& trace() const { return trace_; }

  /// Gradients against plain autograd's.
  std::string check_gradients(const Policy& policy) {
    if (device_.is_virtual()) return "not applicable";
    if (expected_gradients_.empty()) expected_gradients_ = trainer_->gradients(std::nullopt, {});
    return compare_gradients(model_.parameter_names, expected_gradients_,
                             trainer_->gradients(policy, order_));
  }

  /// Steps under `policy` within the device's capacity and the policy's host memory.
  std::vector<StepResult> train(const Policy& policy, int steps, Recording recording) {
    device_.release_cache();
    device_.set_capacity(capacity());
    device_.set_host_capacity(policy.host_memory_bytes);
    std::vector<StepResult> results;
    for (int i = 0; i < steps; ++i) {
      progress_("training step " + std::to_string(i + 1) + " of " + std::to_string(steps));
      results.push_back(trainer_->step(policy, order_, recording));
      if (i > 0 && recording == Recording::kNone) results.back().drop_lists();
    }
    device_.set_capacity(std::nullopt);
    device_.set_host_capacity(std::nullopt);
    return results;
  }

  /// Where what lies on the device before a step is more than its capacity already: that. A caching allocator
  /// would not ask the device for what it holds, and so be refused nothing.
  std::optional<OutOfMemory> refusal_beforehand() {
    device_.release_cache();
    device_.reset_peak();
    const auto cache = device_.cache_use();
    const Bytes held = cache ? cache->reserved_peak_bytes : device_.live_bytes();
    if (held <= capacity().value_or(held)) return std::nullopt;
    return OutOfMemory{0, device_.live_bytes(), capacity()};
  }

  /// Of the measured steps; nullopt: what the machine has.
  std::optional<Bytes> capacity() const {
    return trace_.settings.device_memory_bytes ? trace_.settings.device_memory_bytes : device_.memory_bytes();
  }

  /// The gradients that check_gradients compares with lie in device memory: not while steps are measured.
  void forget_gradients() { expected_gradients_.clear(); }

 private:
  void load() {
    progress_("loading the model");
    turn_graph_optimisation_off();
    device_.prepare_cores(request_.threads);
    at::set_num_threads(request_.threads);
    trace_.settings = request_.settings;
    model_ = load_model(request_.model_path);
    std::vector<std::string>& inputs = trace_.settings.inputs;
    if (inputs.empty()) inputs = input_specs_in_archive(request_.model_path);
    if (inputs.empty())
      throw input_error(
          model_.info.name + ": what are its inputs? The archive does not say",
          "give one --input for each, as in --input 'int64[4,128]<512' or --input 'float32[8,3,64,64]'");
    at::manual_seed(trace_.settings.seed);
    make_inputs(model_, inputs);
    if (!device_.is_virtual()) refuse_weightless(model_);
    if (!device_.torch_device().is_cpu()) move_to_device(model_, device_.torch_device());
    trace_.model = model_.info;
    refuse_foreign_plan(request_.policy, request_.policy_made_for,
                        fingerprint_of_run(trace_.model, trace_.settings));
    trace_.environment = {request_.device,
                          device_.description(),
                          TORCH_VERSION,
                          request_.threads,
                          device_.known_link().value_or(Link{}),
                          device_.memory_bytes(),
                          device_.is_virtual()};
  }

  /// What costs time beside the program itself, and the program's own time without what recording it takes.
  void calibrate_times() {
    if (device_.known_link()) return;
    StepCalibration measured = measure_costs();
    for (int i = 1; i < kCalibrations && measured.cores_moved; ++i) measured = measure_costs();
    if (measured.cores_moved)
      trace_.notes.emplace_back(
          "the cores that compute and copy were not always as far apart from each other while it was "
          "measured "
          "what copies cost: predicted times mean little; record again on a quiet machine");
    Calibration& calibration = measured.costs;
    fit(trace_.program, calibration, preset_policy("keep"), calibration.step.median_ns);
    calibration.reload_per_mib = reload_cost(trace_.program, calibration, measured.offloaded_extra_ns);
    if (trace_.dense_program)
      fit(*trace_.dense_program, calibration, dense_offload_all(), dense_compute_ns());
    trace_.environment.link = link_of(calibration);
    trace_.environment.calibration = calibration;
  }

  StepCalibration measure_costs() {
    progress_("measuring what copies cost");
    const CopyCalibration copies = calibrate_copies(device_);
    progress_("measuring what offloading costs");
    return calibrate(device_, *trainer_, copies, 2 * trace_.program.saved.size(), order_);
  }

  void fit(Program& program, const Calibration& calibration, const Policy& policy, Nanoseconds compute_ns) {
    const auto factor = fit_to_compute(program, calibration, policy, compute_ns);
    if (factor && *factor > kLeastFactor && *factor < 1 / kLeastFactor) return;
    trace_.notes.push_back(
        "steps that were recorded took " +
        (factor ? fmt::format("{:.2g} times as long as others", 1 / *factor) : "hardly any time") +
        ": predicted times mean little; record a larger batch, or on a quiet machine");
  }

  void record() {
    progress_("warming up");
    for (int i = 0; i < trace_.settings.warmup; ++i) trainer_->plain_step();
    std::vector<RecordedPass> keep_passes;
    for (int i = 0; i < kKeepPasses; ++i) {
      progress_("recording with nothing offloaded");
      keep_passes.push_back(record_pass(preset_policy("keep")));
    }
    progress_("recording with everything offloaded");
    const RecordedPass offload_pass = record_pass(preset_policy("offload"));
    trace_.program = build_program(keep_passes, offload_pass);
    order_ = backward_order(trace_.program);
    const RecordedPass last = record_dense(offload_pass);
    calibrate_times();
    note_allocator_state(trace_.program, last);
    if (trace_.dense_program) note_allocator_state(*trace_.dense_program, last);
  }

  /// What is copied densely, and the dense program where it is another. Returns the last pass.
  RecordedPass record_dense(const RecordedPass& offload_pass) {
    progress_("recording with everything offloaded densely");
    StepResult step = trainer_->step(dense_offload_all(), {}, Recording::kProgram);
    const std::vector<Staging> staging = staging_of(step.recording, step.copies);
    if (same_program(offload_pass, step.recording)) {
      trace_.program.staging = staging;
      return std::move(step.recording);
    }
    std::vector<RecordedPass> passes;
    passes.push_back(std::move(step.recording));
    while (passes.size() < kDensePasses) passes.push_back(record_pass(dense_offload_all()));
    trace_.dense_program = build_program(passes, passes.front());
    trace_.dense_program->staging = staging;
    // The difference is the dense copies' if without them all is as before.
    RecordedPass again = record_pass(preset_policy("keep"));
    build_program({&again, 1}, offload_pass);
    return again;
  }

  /// What a step computes in which every tensor comes back dense: the median, exposed time taken out.
  Nanoseconds dense_compute_ns() {
    std::vector<Nanoseconds> times;
    for (int i = 0; i <= kKeepPasses; ++i) {
      const StepResult step = trainer_->step(dense_offload_all(), order_, Recording::kNone);
      if (i > 0) times.push_back(step.step_time_ns - step.exposed_ns);  // the first only warms up
    }
    return median_of(std::move(times));
  }

  /// The state in which measured steps begin; `last` was recorded last.
  void note_allocator_state(Program& program, const RecordedPass& last) {
    device_.release_cache();
    const auto storage_of = storages_replaced_by(program, last);
    program.allocator = device_.allocator_state([&](AllocationId allocation) {
      const auto found = storage_of.find(allocation);
      return found == storage_of.end() ? -1 : found->second;
    });
  }

  RecordedPass record_pass(const Policy& policy) {
    return std::move(trainer_->step(policy, {}, Recording::kProgram).recording);
  }

  const RunRequest& request_;
  Device& device_;
  const Progress& progress_;
  Model model_;
  Trace trace_;
  std::optional<Trainer> trainer_;
  std::vector<SavedId> order_;
  std::vector<at::Tensor> expected_gradients_;
};

/// What the device has to say besides.
void add_notes(Trace& trace, Device& device) {
  for (std::string& note : device.take_notes()) trace.notes.push_back(std::move(note));
}

/// Two steps for the trace's timeline, by the GPU's tracer too where it has one.
Timeline record_timeline(Job& job, const Policy& policy, const StepTracing* tracing) {
  // CUPTI instruments kernels when they are first launched under it, which takes time: not in what is shown.
  if (tracing != nullptr && tracing->is_on()) job.train(policy, 1, Recording::kTimeline);
  return build_timeline(job.train(policy, kStepsShown, Recording::kTimeline));
}

void measure(Job& job, const RunRequest& request, const Progress& progress, const StepTracing* tracing,
             RunResult& result) {
  progress("checking the gradients");
  result.trace.gradients = job.check_gradients(request.policy);
  job.forget_gradients();
  const std::vector<StepResult> measured =
      job.train(request.policy, request.settings.steps, Recording::kNone);
  result.commands = measured.front().commands;
  result.trace.metrics = summarize(measured);
  result.trace.ledger = measured.front().ledger;
  result.trace.timeline = record_timeline(job, request.policy, tracing);
}

Error out_of_memory(const OutOfMemory& refusal) {
  const std::string asked =
      refusal.asked_bytes > 0 ? format_bytes(refusal.asked_bytes) + " asked for, " : "before a step begins, ";
  const std::string message = "out of device memory: " + asked + format_bytes(refusal.live_bytes) + " live";
  if (!refusal.capacity_bytes)
    return environment_error(
        message,
        "the recorded passes have all of the device: a smaller batch, or --device virtual, "
        "which has no end there; per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF "
        "lessens what they have");
  return environment_error(message + " of " + format_bytes(*refusal.capacity_bytes),
                           "record a trace without --device-memory, then let `offprof tune --trace FILE "
                           "--memory-budget " +
                               std::to_string(*refusal.capacity_bytes) + "` find a policy that fits");
}

RunResult run(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing) {
  Job job(request, device, progress, tracing);
  RunResult result;
  result.trace = job.trace();
  result.trace.policy = request.policy;
  device.take_out_of_memory();
  auto refusal = job.refusal_beforehand();
  try {
    if (!refusal) measure(job, request, progress, tracing, result);
  } catch (const std::exception&) {
    device.set_capacity(std::nullopt);
    device.set_host_capacity(std::nullopt);
    refusal = device.take_out_of_memory();
    if (!refusal) throw;
    if (!refusal->capacity_bytes) throw out_of_memory(*refusal);
  }
  if (refusal) result.refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes};
  add_notes(result.trace, device);
  if (tracing != nullptr)
    for (std::string& note : tracing->take_notes()) result.trace.notes.push_back(std::move(note));
  return result;
}

ComparisonResult compare(const RunRequest& request, const Comparison& comparison, Device& device,
                         const Progress& progress) {
  Job job(request, device, progress);
  ComparisonResult result;
  result.trace = job.trace();
  if (const auto refusal = job.refusal_beforehand()) throw out_of_memory(*refusal);
  for (const ComparedPolicy& compared : comparison.policies) {
    PolicyRun& run = result.runs.emplace_back();
    run.policy = compared.policy;
    run.gradients = job.check_gradients(run.policy);
  }
  job.forget_gradients();
  measure_interleaved(
      {[&](const Policy& policy, int steps) { return job.train(policy, steps, Recording::kNone); },
       [&] { return device.core_to_core_ns(); }, progress},
      comparison, result);
  add_notes(result.trace, device);
  return result;
}

/// As `error`, with what the device has to say besides: a model may have stopped because it saw zeros.
Error with_notes(const Error& error, Device& device) {
  std::string hint = error.hint();
  for (const std::string& note : device.take_notes()) hint += (hint.empty() ? "" : "; ") + note;
  return {error.kind(), error.what(), hint};
}

/// Runs `work`; what LibTorch throws comes out as Error.
template <typename Work>
auto translating_errors(const RunRequest& request, Device& device, Work work) {
  try {
    device.take_out_of_memory();
    device.take_host_refusal();
    return work();
  } catch (const std::exception& error) {
    device.set_capacity(std::nullopt);
    device.set_host_capacity(std::nullopt);
    if (const auto refusal = device.take_host_refusal()) throw Error(*refusal);
    if (const auto refusal = device.take_out_of_memory()) throw out_of_memory(*refusal);
    if (const auto* ours = dynamic_cast<const Error*>(&error)) throw with_notes(*ours, device);
    throw with_notes(input_error(request.model_path + ": LibTorch stopped: " + readable_reason(error)),
                     device);
  }
}

}  // namespace

RunResult run_job(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing) {
  return translating_errors(request, device, [&] { return run(request, device, progress, tracing); });
}

ComparisonResult comparison_job(const RunRequest& request, const Comparison& comparison, Device& device,
                                const Progress& progress) {
  return translating_errors(request, device, [&] { return compare(request, comparison, device, progress); });
}

}  // namespace offprof
