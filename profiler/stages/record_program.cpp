#include "profiler/stages/record_program.h"

#include <algorithm>
#include <string>
#include <utility>

#include "profiler/recorder/recompute_recorder.h"
#include "profiler/recording/program_builder.h"
#include "simulator/steps/dense_reloads.h"

namespace offprof {
namespace {

/// Passes for the separate program of dense copies; see kKeepPasses.
constexpr int kDensePasses = 3;

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

StepScript<RecordedPass> record_pass(Policy policy) {
  const StepOrder order{.policy = std::move(policy), .recording = Recording::kProgram};
  StepResult step = co_await order;
  co_return std::move(step.recording);
}

/// Searches in two steps, since two steps may differ in the contents that they save.
StepScript<void> find_recomputations(const StepSource& source, RecordedProgram& recorded) {
  std::vector<std::vector<FoundRecomputation>> found;
  const auto residents = source.residents();
  bool is_same = true;
  for (int i = 0; i < 2; ++i) {
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

/// Records the dense copies, and the dense program if it differs.
StepScript<void> record_dense(const StepSource& source, const RecordedPass& offload_pass,
                              RecordedProgram& recorded) {
  if (needs_its_layouts(recorded.program)) {
    recorded.notes.emplace_back(
        "steps under TRL's rules are not recorded: TRL would return a padded attention bias without its "
        "padding, "
        "which efficient attention refuses; predictions for the policies trl and trl-trainer assume that it "
        "does not");
    recorded.last_pass = co_await record_pass(preset_policy("keep"));
    co_return;
  }
  source.progress("recording with everything offloaded as dense copies");
  const StepOrder dense{.policy = dense_offload_all(), .recording = Recording::kProgram};
  StepResult step = co_await dense;
  const std::vector<Staging> staging = staging_of(step.recording, step.copies);
  recorded.program.staging = staging_in(recorded.program, step.recording, staging);
  if (serves_dense_steps(offload_pass, step.recording)) {
    recorded.last_pass = std::move(step.recording);
    co_return;
  }
  std::vector<RecordedPass> passes;
  passes.push_back(std::move(step.recording));
  while (passes.size() < kDensePasses) passes.push_back(co_await record_pass(dense_offload_all()));
  recorded.dense_program = build_program(passes, passes.front());
  recorded.dense_program->staging = staging;
  // Checks that steps without dense copies are unchanged, so that the copies cause the difference.
  recorded.last_pass = co_await record_pass(preset_policy("keep"));
  build_program({&recorded.last_pass, 1}, offload_pass);
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
  for (int i = 0; i < kKeepPasses; ++i) {
    source.progress("recording with nothing offloaded");
    keep_passes.push_back(co_await record_pass(preset_policy("keep")));
  }
  source.progress("recording with everything offloaded");
  const RecordedPass offload_pass = co_await record_pass(preset_policy("offload"));
  RecordedProgram recorded;
  recorded.program = build_program(keep_passes, offload_pass);
  recorded.guide.backward_order = backward_order(recorded.program);
  if (finds_recomputations) co_await find_recomputations(source, recorded);
  co_await record_dense(source, offload_pass, recorded);
  co_return recorded;
}

void note_allocator_state(DeviceAllocator& allocator, RecordedProgram& recorded) {
  note_allocator_state(allocator, recorded.program, recorded.last_pass);
  if (recorded.dense_program) note_allocator_state(allocator, *recorded.dense_program, recorded.last_pass);
}

}  // namespace offprof
