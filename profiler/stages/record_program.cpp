#include "profiler/stages/record_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/recorder/recompute_recorder.h"
#include "profiler/recording/program_builder.h"
#include "simulator/steps/dense_reloads.h"

namespace offprof {
namespace {

/// Returns the entries of `gathered`, perhaps from another program, for tensors that `program` saves as that
/// pass did.
std::vector<Staging> staging_in(const StepProgram& program, const RecordedPass& pass,
                                std::vector<Staging> gathered) {
  std::erase_if(gathered, [&](const Staging& staging) {
    const auto tensor = static_cast<std::size_t>(staging.tensor);
    return tensor >= program.saved.size() || program.saved[tensor].layout != pass.saved[tensor].saved.layout;
  });
  return gathered;
}

StepScript<RecordedPass> record_pass(Policy policy, StepGuide guide = {}) {
  const StepOrder order{
      .policy = std::move(policy), .guide = std::move(guide), .recording = Recording::kProgram};
  StepResult step = co_await order;
  co_return std::move(step.recording);
}

/// Searches in several steps, since a step need not repeat what another did.
StepScript<void> find_recomputations(const StepSource& source, RecordedProgram& recorded) {
  std::vector<std::vector<FoundRecomputation>> found;
  const auto residents = source.residents();
  bool is_same = true;
  for (int i = 0; i < source.budget.search; ++i) {
    source.progress("searching for tensors that can be recomputed");
    RecomputeRecorder recorder(source.device, *residents);
    const StepOrder order{.policy = preset_policy("keep"), .guide = recorded.guide, .listener = &recorder};
    co_await order;
    is_same = is_same && recorder.saw(recorded.program);
    found.push_back(recorder.take());
  }
  recorded.program.recomputations.emplace();
  if (!is_same) co_return;
  for (FoundRecomputation& one : agreed(std::move(found.back()), found.front())) {
    recorded.guide.recomputations.emplace(
        one.recomputation.tensor, std::make_shared<const ExecutableRecomputation>(std::move(one.executable)));
    recorded.program.recomputations->push_back(std::move(one.recomputation));
  }
}

/// Bytes to which efficient attention aligns the rows of its bias (PyTorch pads the bias, and refuses another
/// one: "attn_bias is not correctly aligned").
constexpr std::int64_t kBiasAlignment = 16;

/// Returns true if the rows of the tensor are aligned by padding, which a dense copy leaves out.
bool has_padded_rows(const SavedTensor& saved) {
  const auto &sizes = saved.layout->sizes, &strides = saved.layout->strides;
  const std::int64_t elements = elements_of(*saved.layout);
  if (sizes.size() < 2 || elements == 0 || strides.back() != 1) return false;
  const std::int64_t row = sizes.back(), element_bytes = saved.bytes / elements;
  return strides[strides.size() - 2] > row && row * element_bytes % kBiasAlignment != 0;
}

/// Returns true if a dense copy of a tensor would stop the program.
bool needs_its_layouts(const StepProgram& program) {
  return std::ranges::any_of(program.saved, [&](const SavedTensor& saved) {
    return program.names[saved.op].find("efficient_attention") != std::string::npos && has_padded_rows(saved);
  });
}

/// Returns true if compiled code would find a tensor that it saved in another layout. It asserts the strides
/// (inductor's size_asserts).
bool asserts_its_layouts(const StepProgram& program) {
  return std::ranges::any_of(program.saved, [&](const SavedTensor& saved) {
    return saved.movability == Movability::kMovable && program.names[saved.op] == "CompiledFunction" &&
           !is_dense(*saved.layout);
  });
}

/// Returns true if a tensor is unpacked again after the node that unpacked it has run, as for the gradient of
/// a gradient.
bool unpacks_again(const StepProgram& program) {
  std::vector<std::int64_t> unpacked_in(program.saved.size(),
                                        -1);  // node by saved tensor; -1: not unpacked yet
  std::int64_t node = 0;
  for (const Event& event : program.events) {
    node += event.kind == EventKind::kNodeEnd ? 1 : 0;
    if (event.kind != EventKind::kUnpack) continue;
    if (unpacked_in[event.id] >= 0 && unpacked_in[event.id] != node) return true;
    unpacked_in[event.id] = node;
  }
  return false;
}

/// Returns why TRL's rules would stop the program; nullopt: they would not.
std::optional<std::string> why_trl_stops(const StepProgram& program) {
  if (needs_its_layouts(program))
    return "TRL would return a padded attention bias without its padding, which efficient attention refuses";
  if (asserts_its_layouts(program))
    return "TRL would return a tensor of compiled code with other strides, which that code refuses";
  if (unpacks_again(program))
    return "TRL returns each saved tensor once, and backward unpacks some again (retain_graph=True, or the "
           "gradient of a gradient)";
  return std::nullopt;
}

/// Adds a note if TRL would move tensors that the policies with its rules keep.
void note_unpacked(RecordedProgram& recorded) {
  const auto unpacked =
      std::ranges::count(recorded.program.saved, Movability::kUnpacked, &SavedTensor::movability);
  if (unpacked == 0) return;
  recorded.notes.push_back(
      fmt::format("backward saves {} tensors again that it has unpacked; the policies trl and trl-trainer "
                  "keep them, while TRL "
                  "itself would offload them once more",
                  unpacked));
}

void note_allocator_state(DeviceAllocator& allocator, StepProgram& program, const RecordedPass& last) {
  allocator.release_cache();
  const auto storage_of = storages_replaced_by(program, last);
  program.allocator = allocator.allocator_state([&](AllocationId allocation) {
    const auto found = storage_of.find(allocation);
    return found == storage_of.end() ? -1 : found->second;
  });
}

}  // namespace

StepScript<RecordedProgram> record_program(const StepSource& source, bool finds_recomputations) {
  std::vector<RecordedPass> keep_passes;
  for (int i = 0; i < source.budget.keep; ++i) {
    source.progress("recording with nothing offloaded");
    keep_passes.push_back(co_await record_pass(preset_policy("keep")));
  }
  source.progress("recording with everything offloaded");
  StepGuide moving;
  moving.moves_inputs = true;
  RecordedPass offload_pass = co_await record_pass(preset_policy("offload"), std::move(moving));
  RecordedProgram recorded;
  recorded.program = build_program(keep_passes, offload_pass);
  recorded.step_size = keep_passes.front().size;
  if (!carried_storages(recorded.program, /*of_program=*/true).empty()) {
    source.progress("recording once more with everything offloaded");
    StepGuide again;
    again.moves_inputs = true;
    const RecordedPass next_pass = co_await record_pass(preset_policy("offload"), std::move(again));
    add_let_goes(recorded.program, offload_pass, next_pass);
  }
  recorded.guide.backward_order = backward_order(recorded.program);
  if (finds_recomputations) co_await find_recomputations(source, recorded);
  recorded.offload_pass = std::move(offload_pass);
  co_return recorded;
}

StepScript<void> record_dense(const StepSource& source, RecordedProgram& recorded) {
  note_unpacked(recorded);
  if (const auto why = why_trl_stops(recorded.program)) {
    recorded.notes.push_back(
        fmt::format("steps under TRL's rules are not recorded: {}; predictions for the policies trl and "
                    "trl-trainer assume "
                    "that the program goes on",
                    *why));
    recorded.last_pass = co_await record_pass(preset_policy("keep"));
    co_return;
  }
  source.progress("recording with everything offloaded as dense copies");
  const StepOrder dense{.policy = dense_offload_all(), .recording = Recording::kProgram};
  StepResult step = co_await dense;
  const std::vector<Staging> staging = staging_of(step.recording, step.copies);
  recorded.program.staging = staging_in(recorded.program, step.recording, staging);
  if (serves_dense_steps(recorded.offload_pass, step.recording)) {
    recorded.last_pass = std::move(step.recording);
    if (carried_storages(recorded.program).empty()) co_return;
    // Replays begin with what a step that offloads nothing leaves (everything_on_device).
    recorded.last_pass = co_await record_pass(preset_policy("keep"));
    co_return;
  }
  std::vector<RecordedPass> passes;
  passes.push_back(std::move(step.recording));
  while (std::ssize(passes) < source.budget.dense)
    passes.push_back(co_await record_pass(dense_offload_all()));
  recorded.dense_program = build_program(passes, passes.front());
  recorded.dense_program->staging = staging;
  recorded.last_pass = std::move(passes.back());
  // Checks that steps without dense copies are unchanged, so that the copies cause the difference.
  for (int i = 0; i < source.budget.keep_after_dense; ++i) {
    recorded.last_pass = co_await record_pass(preset_policy("keep"));
    build_program({&recorded.last_pass, 1}, recorded.offload_pass);
  }
}

void note_allocator_state(DeviceAllocator& allocator, RecordedProgram& recorded) {
  note_allocator_state(allocator, recorded.program, recorded.last_pass);
  if (recorded.dense_program) note_allocator_state(allocator, *recorded.dense_program, recorded.last_pass);
}

}  // namespace offprof
