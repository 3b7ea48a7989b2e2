#include "tests/properties/case_check.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>

#include "engine/scheduler/placement_rules.h"
#include "engine/storage/block_codec.h"
#include "profiler/calibration/transform_profiles.h"
#include "profiler/recording/program_builder.h"
#include "simulator/replay/replay.h"
#include "simulator/steps/dense_reloads.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/conformance/disk_under_test.h"
#include "tests/conformance/inverted.h"
#include "tests/properties/interpreter.h"
#include "tests/properties/memory_over_events.h"
#include "tests/properties/operations.h"
#include "tests/support/command_lists.h"
#include "traces/base/error.h"
#include "traces/format/program_io.h"

namespace offprof {
namespace {

/// Bound on the rounding difference of other kernels over the longest programs. A wrong tensor differs by
/// more.
constexpr double kRounding = 1e-5;

bool is_close(const std::vector<double>& actual, const std::vector<double>& expected) {
  double scale = 1;
  for (const double value : expected)
    if (std::isfinite(value)) scale = std::max(scale, std::abs(value));
  return std::ranges::equal(actual, expected, [&](double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
    return a == b || std::abs(a - b) <= kRounding * scale;
  });
}

bool is_bitwise_equal(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

bool may_ask_again(const Instructions& program) {
  return std::ranges::any_of(program, [](const Instruction& i) { return operation_of(i).asks_again; });
}

/// True if copies on the compute stream may write to a saved tensor while it is copied out. No engine can
/// order these. Backward then refuses to read the tensor, so nobody gets the copied bytes.
bool may_overwrite_saved(const Instructions& program) {
  return std::ranges::any_of(program, [](const Instruction& i) {
    return operation_of(i).name == "overwrite_part_" || operation_of(i).name == "zero_part_";
  });
}

/// True if the program changes a tensor in place, which recorded facts about its tensors need not survive.
bool changes_in_place(const Instructions& program) {
  return std::ranges::any_of(program,
                             [](const Instruction& i) { return operation_of(i).name.ends_with('_'); });
}

constexpr std::string_view kLetGo = "that the policy's rules had released";

/// True if TRL's rules refused an unpack: they drop a tensor after its first unpack.
bool asked_again(const Policy& policy, const Outcome& outcome) {
  return policy.scheduler == SchedulerKind::kTrl &&
         std::ranges::any_of(outcome.refusals,
                             [](const auto& line) { return line.find(kLetGo) != std::string::npos; });
}

/// Returns the refusals of `outcome` that are neither of that kind nor plain autograd's.
std::vector<std::string> other_refusals(const Outcome& outcome, const Outcome& plain, std::string_view kind) {
  std::vector<std::string> others = outcome.refusals;
  std::erase_if(others, [&](const std::string& line) {
    return line.find(kind) != std::string::npos ||
           std::ranges::find(plain.refusals, line) != plain.refusals.end();
  });
  return others;
}

std::string up_to_colon(const std::string& text) {
  return text.substr(0, text.find(": "));
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n      " + line;
  return text.empty() ? "nothing" : text;
}

/// Returns all transforms that rules may name here.
std::vector<std::shared_ptr<const Transform>> inverted() {
  return {std::make_shared<const Inverted>()};
}

/// Returns a policy that recomputes all tensors that can be and offloads the rest. Random policies recompute
/// few.
Policy all_made_again() {
  Policy policy = preset_policy("offload");
  policy.name = "all_made_again";
  policy.rules.emplace_back().placement.place = Place::kRecompute;
  return policy;
}

}  // namespace

struct CaseCheck::Recording {
  Trace trace;  ///< as `run` would write it for the programs
  std::vector<SavedId> backward_order;
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecomputation>> recomputations;
  bool has_trl = false;  ///< true if it can run under TRL's rules

  StepGuide guide(const Policy& policy) const {
    StepGuide guide(backward_order);
    guide.placements = choose_placements(policy, trace.program, trace.transforms).by_tensor;
    guide.recomputations = recomputations;
    guide.transforms = inverted();
    return guide;
  }
};

CaseCheck::CaseCheck(CountingDevice& device) : device_(device), runner_(device) {
  give_disk(device);
}

std::vector<std::string> CaseCheck::findings_of(const RandomCase& random_case) {
  findings_.clear();
  runner_.forget_leaves();
  const Outcome plain = runner_.plain(random_case.program);
  hazards_seen();  // none of our copies has run
  count(random_case.program, plain);
  std::optional<Recording> recording;
  if (plain.refusals.empty()) recording = record(random_case.program);
  for (const Policy& policy : random_case.policies)
    if (gives_disk_for(policy)) check_policy(random_case, policy, plain, recording);
  if (recording && !recording->recomputations.empty())
    check_policy(random_case, all_made_again(), plain, recording);
  return findings_;
}

/// Returns false if the policy compresses tensors and this build has no codec.
bool CaseCheck::gives_disk_for(const Policy& policy) {
  if (!uses_disk(policy)) return true;
  if (compresses(policy) && !has_block_codec()) return false;
  if (compresses(policy) != has_compressed_memory_) {
    if (has_compressed_memory_)
      give_disk(device_);
    else
      give_compressed_memory(device_);
    has_compressed_memory_ = !has_compressed_memory_;
  }
  coverage_.compressed += has_compressed_memory_ ? 1 : 0;
  return true;
}

void CaseCheck::count(const Instructions& program, const Outcome& plain) {
  ++coverage_.programs;
  coverage_.refused += plain.refusals.empty() ? 0 : 1;
  for (const Instruction& instruction : program) coverage_.operations.emplace(operation_of(instruction).name);
}

std::optional<CaseCheck::Recording> CaseCheck::record(const Instructions& program) {
  try {
    const RecordedPass keep[] = {runner_.recorded(program, preset_policy("keep")),
                                 runner_.recorded(program, preset_policy("keep"))};
    RecordedPass last = runner_.recorded(program, preset_policy("offload"));
    Recording recording;
    Trace& trace = recording.trace;
    trace.program = build_program(keep, last);
    recording.backward_order = backward_order(trace.program);
    find_recomputations(program, recording);
    recording.has_trl = !may_ask_again(program);
    if (recording.has_trl) {
      RecordedPass dense = runner_.recorded(program, dense_offload_all());
      if (!serves_dense_steps(last, dense)) trace.dense_program = build_program({&dense, 1}, dense);
      last = std::move(dense);
    }
    trace.transforms = profile_transforms(device_, inverted(), trace.program);
    for (StepProgram* const made : {&trace.program, trace.dense_program ? &*trace.dense_program : nullptr}) {
      if (made == nullptr) continue;
      check_program(*made, "program");
      made->allocator = device_.allocator_state([](AllocationId) { return -1; });
    }
    ++coverage_.recorded;
    return recording;
  } catch (const Error& error) {
    ++coverage_.not_recorded[up_to_colon(error.what())];
    return std::nullopt;
  }
}

/// Finds recomputations in two steps, as a run does.
void CaseCheck::find_recomputations(const Instructions& program, Recording& recording) {
  const auto first = runner_.recomputations(program, recording.trace.program);
  auto second = runner_.recomputations(program, recording.trace.program);
  recording.trace.program.recomputations.emplace();
  if (!first || !second) return;
  for (FoundRecomputation& found : agreed(std::move(*second), *first)) {
    recording.recomputations.emplace(
        found.recomputation.tensor,
        std::make_shared<const ExecutableRecomputation>(std::move(found.executable)));
    recording.trace.program.recomputations->push_back(std::move(found.recomputation));
    ++coverage_.recomputations;
  }
}

void CaseCheck::check_policy(const RandomCase& random_case, const Policy& policy, const Outcome& plain,
                             const std::optional<Recording>& recording) {
  const Leftovers before = leftovers_of(device_);
  const PolicyOutcome measured = runner_.under(
      random_case.program, policy, recording ? recording->guide(policy) : unrecorded_guide(policy));
  ++coverage_.policies;
  if (const std::string left = left_since(before, device_); !left.empty())
    find(policy, "left behind: " + left);
  const std::vector<std::string> hazards = hazards_seen();
  if (!may_overwrite_saved(random_case.program))
    for (const std::string& hazard : hazards) find(policy, "streams: " + hazard);
  coverage_.recomputing += recomputes(policy) ? 1 : 0;
  if (asked_again(policy, measured.outcome)) {
    ++coverage_.asked_again;
    return check_refused(policy, measured.outcome, plain, kLetGo, may_ask_again(random_case.program));
  }
  if (recomputes(policy) && refuses_to_make_again(measured.outcome.refusals)) {
    ++coverage_.not_recomputed;
    return check_refused(policy, measured.outcome, plain, kCannotBeMadeAgain,
                         changes_in_place(random_case.program));
  }
  check_outcome(policy, measured, plain);
  if (!recording) return;
  if (policy.scheduler == SchedulerKind::kTrl && !recording->has_trl) return;
  check_memory(*recording, random_case, policy, measured);
}

/// Checks a run that a policy may refuse although plain autograd does not. The policy may refuse only if the
/// program gives it a reason, and only for that reason. `kind` is part of each of its messages.
void CaseCheck::check_refused(const Policy& policy, const Outcome& outcome, const Outcome& plain,
                              std::string_view kind, bool has_reason) {
  if (!has_reason) find(policy, "refused without reason: " + joined(outcome.refusals));
  if (const auto others = other_refusals(outcome, plain, kind); !others.empty())
    find(policy, "refused for another reason: " + joined(others));
}

void CaseCheck::check_outcome(const Policy& policy, const PolicyOutcome& measured, const Outcome& plain) {
  const Outcome& outcome = measured.outcome;
  if (outcome.refusals != plain.refusals)
    find(policy, "refused: " + joined(outcome.refusals) + "\n    plain autograd: " + joined(plain.refusals));
  for (std::size_t leaf = 0; leaf < plain.gradients.size(); ++leaf) {
    const auto& actual = outcome.gradients[leaf];
    const bool is_equal = measured.has_other_layouts ? is_close(actual, plain.gradients[leaf])
                                                     : is_bitwise_equal(actual, plain.gradients[leaf]);
    if (!is_equal || outcome.has_gradient[leaf] != plain.has_gradient[leaf])
      find(policy, fmt::format("the gradient of leaf {} differs from plain autograd's", leaf));
  }
}

void CaseCheck::check_memory(const Recording& recording, const RandomCase& random_case, const Policy& policy,
                             const PolicyOutcome& measured) {
  const TraceSteps steps(recording.trace);
  if (!steps.inexactness(policy).empty()) {
    ++coverage_.half_dense;
    return;
  }
  ++coverage_.predictions;
  const Step& step = steps.step(policy);
  const Metrics predicted = replay(step, policy, kAnyLink).metrics;
  const auto hold = [&](const char* what, Bytes real, Bytes simulated) {
    if (real != simulated) find(policy, fmt::format("{}: measured {}, simulated {}", what, real, simulated));
  };
  hold("device peak", measured.device_peak, predicted.device_peak_bytes.value());
  hold("host peak", measured.host_peak, predicted.host_peak_bytes.value());
  hold("disk peak", measured.disk_peak, predicted.disk_peak_bytes.value_or(0));
  hold("bytes written", measured.disk_written, predicted.disk_write_bytes.value_or(0));
  hold("bytes read", measured.disk_read, predicted.disk_read_bytes.value_or(0));
  hold("D2H bytes", measured.d2h, predicted.d2h_bytes.value());
  hold("H2D bytes", measured.h2d, predicted.h2d_bytes.value());
  if (measured.commands != replay_commands(step, policy))
    find(policy, "the commands differ from the simulation's");
  coverage_.recomputed += static_cast<std::size_t>(count_of<Recompute>(measured.commands));
  const RecordedPass pass = runner_.recorded(random_case.program, policy, recording.guide(policy));
  if (const auto difference =
          first_difference(memory_at_allocations(pass), memory_at_allocations(step, policy)))
    find(policy, *difference);
}

void CaseCheck::find(const Policy& policy, const std::string& what) {
  findings_.push_back(fmt::format("{} ({}): {}", policy.scheduler == SchedulerKind::kTrl ? "trl" : "offload",
                                  describe(policy), what));
}

}  // namespace offprof
