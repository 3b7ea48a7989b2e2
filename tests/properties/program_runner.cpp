#include "tests/properties/program_runner.h"

#include <ATen/CPUGeneratorImpl.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

#include <utility>

#include "engine/autograd/autograd_engine.h"
#include "engine/autograd/offload_step.h"
#include "profiler/recorder/pass_recorder.h"
#include "tests/hazards/leftovers.h"
#include "tests/properties/interpreter.h"

namespace offprof {
namespace {

constexpr std::uint64_t kSeed = 7;

/// Plain autograd leaks a tensor that multiplies itself in place: the node of `x.mul_(x)` saves x, and is
/// part of x's history. LibTorch causes this; the tensor that an engine saves in place of x has no history.
class PlainAutogradsLeaks {
#if defined(__SANITIZE_ADDRESS__)
  __lsan::ScopedDisabler not_counted_;
#endif
};

/// Registers one leaf as a parameter of a model; the others are only older than the step.
std::shared_ptr<const Residents> residents_of(const Leaves& leaves, const Device& device) {
  Residents residents;
  residents.add(leaves.trained.front(), StorageRole::kParameter, device);
  return std::make_shared<const Residents>(std::move(residents));
}

/// Detects offloaded tensors whose layout a dense copy changes.
class LayoutWatcher final : public StepListener {
 public:
  void on_pack(SavedId, const at::Tensor& value, const PackRequest&, const PackDecision& decision) override {
    if (decision.place != Place::kHost) return;
    changes_ |= value.storage_offset() != 0 || !value.is_non_overlapping_and_dense();
  }
  bool changes() const { return changes_; }

 private:
  bool changes_ = false;
};

std::vector<std::string> run_step(const Instructions& program, Leaves& leaves,
                                  const std::shared_ptr<OffloadStep>& step) {
  const CurrentStep current(step);
  std::vector<std::string> refusals = interpret(program, leaves);
  try {
    step->backward_end();
  } catch (const std::exception&) {
    if (!refuses_to_make_again(refusals)) throw;  // the step is lost and has reported why
  }
  return refusals;
}

/// Removes everything that a program has attached to the leaves; only their values remain.
void forget_graph(Leaves& leaves) {
  for (const at::Tensor& leaf : leaves.trained) leaf.mutable_grad() = at::Tensor();
  leaves.constant = leaves.constant.detach();
}

}  // namespace

Leaves& ProgramRunner::leaves_as_new() {
  at::manual_seed(kSeed);
  Leaves drawn(device_.torch_device());
  if (!leaves_) return leaves_.emplace(std::move(drawn));
  const at::NoGradGuard no_grad;
  leaves_->constant.copy_(drawn.constant);
  for (std::size_t i = 0; i < drawn.trained.size(); ++i) leaves_->trained[i].copy_(drawn.trained[i]);
  return *leaves_;
}

void ProgramRunner::begin_measuring() {
  device_.synchronize();
  device_.take_copy_records();
  device_.take_exposed_ns();
  device_.forget_marks();
  device_.reset_peak();
}

Outcome ProgramRunner::plain(const Instructions& program) {
  Leaves& leaves = leaves_as_new();
  [[maybe_unused]] const PlainAutogradsLeaks leaks;
  Outcome outcome = outcome_of(leaves, interpret(program, leaves));
  forget_graph(leaves);
  settle_autograd(device_.torch_device());
  return outcome;
}

PolicyOutcome ProgramRunner::under(const Instructions& program, const Policy& policy,
                                   const StepGuide& guide) {
  Leaves& leaves = leaves_as_new();
  begin_measuring();
  LayoutWatcher layouts;
  const auto step =
      std::make_shared<OffloadStep>(device_, policy, guide, residents_of(leaves, device_), &layouts);
  PolicyOutcome result;
  std::vector<std::string> refusals = run_step(program, leaves, step);
  result.device_peak = device_.peak_bytes();
  step->stop_listening();
  result.outcome = outcome_of(leaves, std::move(refusals));
  forget_graph(leaves);
  result.host_peak = step->host_peak_bytes();
  result.disk_peak = step->disk().peak_bytes();
  result.disk_written = step->disk().write_bytes();
  result.disk_read = step->disk().read_bytes();
  result.d2h = step->d2h_bytes();
  result.h2d = step->h2d_bytes();
  result.commands = step->commands();
  result.has_other_layouts = policy.scheduler == SchedulerKind::kTrl && layouts.changes();
  settle_autograd(device_.torch_device());
  return result;
}

RecordedPass ProgramRunner::recorded(const Instructions& program, const Policy& policy,
                                     const StepGuide& guide) {
  Leaves& leaves = leaves_as_new();
  begin_measuring();
  PassRecorder recorder(device_, /*wants_node_ends=*/true);
  const auto step =
      std::make_shared<OffloadStep>(device_, policy, guide, residents_of(leaves, device_), &recorder);
  recorder.begin_phase("forward and backward");
  run_step(program, leaves, step);
  recorder.end_step();
  forget_graph(leaves);
  RecordedPass pass = recorder.finish();
  step->stop_listening();
  settle_autograd(device_.torch_device());
  return pass;
}

std::optional<std::vector<FoundRecomputation>> ProgramRunner::recomputations(const Instructions& program,
                                                                             const StepProgram& recorded) {
  Leaves& leaves = leaves_as_new();
  const auto residents = residents_of(leaves, device_);
  RecomputeRecorder recorder(device_, *residents);
  const auto step =
      std::make_shared<OffloadStep>(device_, preset_policy("keep"), StepGuide(), residents, &recorder);
  run_step(program, leaves, step);
  step->stop_listening();
  forget_graph(leaves);
  settle_autograd(device_.torch_device());
  if (!recorder.saw(recorded)) return std::nullopt;
  return recorder.take();
}

Outcome ProgramRunner::outcome_of(const Leaves& leaves, std::vector<std::string> refusals) const {
  Outcome outcome;
  outcome.refusals = std::move(refusals);
  for (const at::Tensor& leaf : leaves.trained) {
    const at::Tensor gradient = leaf.grad();
    outcome.has_gradient.push_back(gradient.defined());
    outcome.gradients.emplace_back();
    if (!gradient.defined() || device_.is_virtual()) continue;
    const at::Tensor numbers = gradient.cpu().contiguous();
    const auto* begin = numbers.const_data_ptr<double>();
    outcome.gradients.back().assign(begin, begin + numbers.numel());
  }
  return outcome;
}

}  // namespace offprof
