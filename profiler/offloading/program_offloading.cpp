#include "profiler/offloading/program_offloading.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "profiler/recording/measured.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Most steps that are observed until one saves the tensors that the plan was made for. Programs with
/// sequences of several lengths make such a step sooner or later.
constexpr int kMostObservedSteps = 20;

/// Most steps that are observed until two save the same tensors, which a search for recompute steps needs.
constexpr int kMostSearchedSteps = 8;

/// Number of whole steps that the report covers.
constexpr std::size_t kReportedSteps = 20;

bool names_origins(const Policy& policy) {
  return std::ranges::any_of(policy.rules, [](const PolicyRule& rule) { return rule.op || rule.module; });
}

bool encodes(const PolicyRule& rule) {
  return !rule.placement.transform.empty();
}

/// Returns the number of steps to observe before the policy can be carried out. Every program has one: the
/// inputs, which stay on the device, are known once the root modules are.
int steps_to_observe(const Policy& policy) {
  if (policy.tensors) return kMostObservedSteps;
  return recomputes(policy) ? kMostSearchedSteps : 1;
}

}  // namespace

ProgramOffloading::ProgramOffloading(PolicyFile file, Device& device, CodeLocator locate)
    : file_(std::move(file)),
      device_(device),
      locate_(std::move(locate)),
      observed_steps_left_(steps_to_observe(file_.policy)) {
  if (!file_.policy.tensors || !file_.saved_fingerprint.empty()) return;
  user_notes_.push_back(fmt::format(
      "the policy's plan does not say which saved tensors it numbers (saved_fingerprint), so {} decides "
      "instead; tune the trace again",
      use_fallback()));
  observed_steps_left_ = steps_to_observe(file_.policy);
}

ProgramOffloading::~ProgramOffloading() {
  current_.reset();
  end_guard();
  step_.reset();
}

void ProgramOffloading::set_tensors(const ProgramTensors& tensors) {
  residents_ = std::make_shared<const Residents>(residents_of(tensors, device_));
  older_bytes_ = bytes_before(tensors, device_, device_.torch_device());
}

std::optional<Policy> ProgramOffloading::fallback() const {
  return file_.fallback ? std::optional(file_.fallback->policy) : std::nullopt;
}

bool ProgramOffloading::needs_origins() const {
  return names_origins(file_.policy) ||
         (file_.policy.tensors && file_.fallback && names_origins(*fallback()));
}

bool ProgramOffloading::recomputes() const {
  return offprof::recomputes(file_.policy) || (file_.fallback && offprof::recomputes(*fallback()));
}

/// Lets the fallback or, without one, the threshold take the place of the plan. Returns its name for notes.
std::string ProgramOffloading::use_fallback() {
  std::string name = file_.fallback ? "the file's fallback" : "the threshold";
  if (file_.fallback) file_.policy = file_.fallback->policy;
  file_.policy.tensors.reset();
  file_.predicted.reset();
  return name;
}

Policy ProgramOffloading::policy_of_step() const {
  if (!observes()) return file_.policy;
  // The order of the reloads is not known yet, and the plan is not known to hold. What will be recomputed is
  // offloaded until it is known how, since the step need not fit without.
  if (recomputes()) {
    Policy everything = preset_policy("offload");
    everything.host_memory_bytes = file_.policy.host_memory_bytes;
    return everything;
  }
  Policy policy = file_.policy.tensors && file_.fallback ? *fallback() : file_.policy;
  policy.tensors.reset();
  policy.prefetch_bytes = 0;
  std::erase_if(policy.rules, encodes);
  return policy;
}

StepOrder ProgramOffloading::order_of_step() {
  StepOrder order{.policy = policy_of_step(), .leaves_cache_peaks = true};
  if (observes()) {
    order.listener = &note_taker_.emplace(needs_origins() ? locate_ : nullptr);
    if (recomputes() && !OperatorNotes::is_taken()) note_taker_->search_recomputations(device_, *residents_);
  }
  if (notes_) order.guide.backward_order = notes_->backward_order;
  if (!order.policy.rules.empty() || order.policy.tensors) {
    std::shared_ptr<const NotedPlacements> noted = observes() ? nullptr : placements_;
    if (!noted) noted = std::make_shared<const NotedPlacements>(order.policy, fallback(), notes_);
    if (!observes()) placements_ = noted;
    order.guide.transforms = noted->transforms;
    begin_guard(order.guide);
    chooser_ = std::make_shared<PlacementChooser>(std::move(noted), guard_);
    order.guide.decide = [chooser = chooser_](SavedId tensor, const at::Tensor& value,
                                              const PackRequest& request) {
      return chooser->choose(tensor, value, request);
    };
  }
  return order;
}

void ProgramOffloading::begin_guard(StepGuide& guide) {
  if (observes() || !recomputations_ || recomputations_->executable().empty() || OperatorNotes::is_taken())
    return;
  guard_ = std::make_shared<RecomputeGuard>(device_, residents_, recomputations_);
  guide.recomputations = recomputations_->executable();
  guide.state_before = [guard = guard_](std::size_t draw) -> const RngState& {
    return guard->state_before(draw);
  };
  guide.on_forward_end = [guard = guard_] { guard->end_forward(); };
}

void ProgramOffloading::end_guard() {
  if (guard_) guard_->end_step();
  guard_.reset();
}

void ProgramOffloading::begin_step(Boundary where) {
  OFFPROF_CHECK(!step_);
  // Steps between entries may have been parts of the program's steps, such as one of several micro-batches.
  if (where == Boundary::kStepEnd && !std::exchange(has_step_ends_, true))
    observed_steps_left_ = steps_to_observe(file_.policy);
  begun_at_ = where;
  chooser_.reset();
  const StepOrder order = order_of_step();
  step_.emplace(device_, order, residents_);
  if (is_entered_) current_.emplace(step_->step());
}

void ProgramOffloading::end_step(Boundary where) {
  if (!step_) return;
  current_.reset();
  step_->end();
  StepResult result = step_->finish();
  step_.reset();
  end_guard();
  note_left_plan();
  const bool is_whole = where == begun_at_ && !result.ledger.empty();
  if (is_whole) add_result(std::move(result));
  if (note_taker_) {
    SavedNotes notes = note_taker_->take();
    note_taker_.reset();
    if (is_whole) learn(std::move(notes));
  }
}

void ProgramOffloading::add_result(StepResult result) {
  if (std::exchange(counted_at_, begun_at_) != begun_at_) {
    results_.clear();
    steps_ = 0;
  }
  ++steps_;
  ledger_ = std::move(result.ledger);
  result.drop_lists(result);
  if (results_.size() == kReportedSteps) results_.erase(results_.begin());
  results_.push_back(std::move(result));
}

/// Takes over what an observed step has shown. Its figures do not count, since it had not all of the policy.
void ProgramOffloading::learn(SavedNotes notes) {
  const bool fits =
      file_.policy.tensors && fingerprint_of_saved(notes.program.saved) == file_.saved_fingerprint;
  if (recomputes()) settle_recomputations(notes);
  notes_ = std::make_shared<const SavedNotes>(std::move(notes));
  placements_.reset();
  --observed_steps_left_;
  if ((fits || !file_.policy.tensors) && (recomputations_ || !recomputes())) observed_steps_left_ = 0;
  if (observed_steps_left_ > 0) return;
  results_.clear();
  note_missing_recomputations();
  if (!file_.policy.tensors || fits) return;
  user_notes_.push_back(fmt::format(
      "the policy names tensors of another program than this one, which saves other tensors: {} decides "
      "instead, so the predicted figures do not hold; record and tune this program",
      use_fallback()));
}

/// Settles the recompute steps if this step and the observed one before saved the same tensors. After the
/// last observed step nothing is recomputed.
void ProgramOffloading::settle_recomputations(SavedNotes& notes) {
  notes.program.recomputations.emplace();
  const bool is_repeated =
      notes_ && fingerprint_of_saved(notes_->program.saved) == fingerprint_of_saved(notes.program.saved);
  if (!is_repeated) return recomputations_.reset();
  std::vector<FoundRecomputation> found = agreed(notes.recomputations, notes_->recomputations);
  for (const FoundRecomputation& one : found) notes.program.recomputations->push_back(one.recomputation);
  recomputations_ = std::make_shared<const KnownRecomputations>(std::move(found));
}

void ProgramOffloading::note_missing_recomputations() {
  if (!recomputes() || (recomputations_ && !recomputations_->executable().empty())) return;
  user_notes_.emplace_back(
      recomputations_
          ? "the policy recomputes tensors, but this program saves none that can be recomputed"
          : "the policy recomputes tensors, but no two steps in a row saved the same ones, so none "
            "is recomputed");
}

void ProgramOffloading::note_left_plan() {
  if (!chooser_ || !chooser_->has_left_plan() || std::exchange(has_noted_left_plan_, true)) return;
  user_notes_.push_back(
      fmt::format("a step saved other tensors than those that the policy's plan was made for, such as those "
                  "of a batch of "
                  "another size: in such steps {} decides instead",
                  file_.fallback ? "the file's fallback" : "the threshold"));
}

void ProgramOffloading::abandon_step() {
  current_.reset();
  step_.reset();
  end_guard();
  note_taker_.reset();
}

void ProgramOffloading::begin_call(std::span<const at::Tensor> inputs) {
  if (step_) step_->step()->add_inputs(inputs);
}

void ProgramOffloading::end_call(std::span<const at::Tensor> outputs) {
  if (step_) step_->step()->add_outputs(outputs);
}

void ProgramOffloading::end_backward() {
  if (has_saved()) step_->step()->backward_end();
}

void ProgramOffloading::forget_in_child() {
  current_.reset();
  if (step_) step_->forget_in_child();
}

void ProgramOffloading::enter() {
  OFFPROF_CHECK(step_ && !is_entered_);
  is_entered_ = true;
  current_.emplace(step_->step());
}

void ProgramOffloading::leave() {
  is_entered_ = false;
  current_.reset();
}

OffloadingReport ProgramOffloading::report() const {
  OffloadingReport report;
  report.policy = file_.policy;
  report.predicted = file_.predicted;
  report.ledger = ledger_;
  report.steps = steps_;
  report.saved_by_other_hooks = tensors_saved_by_other_hooks();
  if (results_.empty()) return report;
  report.measured = summarize(results_);
  *report.measured->device_peak_bytes += older_bytes_;
  *report.measured->device_resident_bytes += older_bytes_;
  return report;
}

std::vector<std::string> ProgramOffloading::take_notes() {
  std::vector<std::string> notes = std::exchange(user_notes_, {});
  std::ranges::move(device_.take_notes(), std::back_inserter(notes));
  return notes;
}

}  // namespace offprof
