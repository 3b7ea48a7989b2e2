#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "simulator/steps/views.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// A storage of 100 floats is encoded into 120 bytes, with 50 temporary bytes; decoding has 30 temporary
/// bytes.
const std::vector<TransformProfile>& profiles() {
  static const std::vector<TransformProfile> kProfiles = [] {
    TransformCost cost;
    cost.dtype = "float32";
    cost.elements = 100;
    cost.encoded_bytes = 120;
    cost.encode = {{{50, -1}, {120, -1}, {0, 0}}, 7};
    cost.decode = {{{400, -1}, {30, -1}, {0, 1}}, 11};
    return std::vector<TransformProfile>{{"pack", false, {cost}}};
  }();
  return kProfiles;
}

/// Saves 400 bytes and frees them; backward unpacks them.
StepProgram one_layer() {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(400);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  sketch.node(a);
  sketch.backward_end();
  StepProgram program = sketch.program();
  program.saved[0].layout = TensorLayout{"float32", {10, 10}, {10, 1}};
  return program;
}

Policy ruled(const char* placement) {
  Policy policy = preset_policy("keep");
  policy.rules.emplace_back().placement = parse_placement(placement);
  return policy;
}

TEST(ReplayRules, EncodingTakesTheMeasuredMemoryAndTime) {
  const StepProgram program = one_layer();
  const Step step(program, {}, profiles());
  const Prediction prediction = replay(step, ruled("pack"), kAnyLink);
  // Encoding: 1000 + 400 + 50 + 120; decoding: 1000 + 120 + 400 + 30.
  EXPECT_EQ(prediction.metrics.device_peak_bytes, 1570);
  EXPECT_EQ(prediction.metrics.step_time_ns, 7 + 11);
  EXPECT_EQ(prediction.metrics.d2h_bytes, 0);
  EXPECT_EQ(prediction.metrics.host_peak_bytes, 0);
}

TEST(ReplayRules, CopiesTheEncodedBytes) {
  const StepProgram program = one_layer();
  const Step step(program, {}, profiles());
  const Metrics metrics = replay(step, ruled("pack+host"), kAnyLink).metrics;
  EXPECT_EQ(metrics.d2h_bytes, 120);
  EXPECT_EQ(metrics.h2d_bytes, 120);
  EXPECT_EQ(metrics.host_peak_bytes, 120);
  EXPECT_EQ(metrics.device_peak_bytes, 1570);
}

TEST(ReplayRules, TheLedgerNamesTheTransform) {
  const StepProgram program = one_layer();
  const Step step(program, {}, profiles());
  EXPECT_EQ(replay_ledger(program, step, ruled("pack+host")),
            (Ledger{{{Place::kHost, PlacementReason::kRule, "pack"}, {1, 400}}}));
  EXPECT_EQ(replay_ledger(program, step, ruled("host")),
            (Ledger{{{Place::kHost, PlacementReason::kRule}, {1, 400}}}));
}

TEST(ReplayRules, EncodedBytesAtThePeakAreCountedSeparately) {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(400);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  const std::int32_t large = sketch.alloc(5000);
  sketch.free(large);
  sketch.node(a);
  StepProgram program = sketch.program();
  program.saved[0].layout = TensorLayout{"float32", {100}, {1}};
  const DeviceContent content = content_at_peak(Step(program, {}, profiles()), ruled("pack"), kAnyLink);
  EXPECT_EQ(content.total, 6120);
  EXPECT_EQ(content.encoded, 120);
  EXPECT_EQ(content.kept + content.stashed + content.reloaded, 0);
  EXPECT_EQ(content.working, 5000);
}

TEST(ReplayRules, PrefetchedEncodedBytesAtThePeakAreCountedSeparately) {
  ProgramSketch sketch(1000);
  std::vector<SavedId> saved;
  for (int i = 0; i < 2; ++i) {
    const std::int32_t x = sketch.alloc(400);
    saved.push_back(sketch.save(x));
    sketch.free(x);
  }
  sketch.unpack(saved[1]);
  sketch.free(sketch.alloc(5000));
  sketch.node_end();
  sketch.release(saved[1]);
  sketch.node(saved[0]);
  StepProgram program = sketch.program();
  for (SavedTensor& tensor : program.saved) tensor.layout = TensorLayout{"float32", {100}, {1}};
  Policy policy = ruled("pack+host");
  policy.prefetch_bytes = 10'000;
  const DeviceContent content = content_at_peak(Step(program, {}, profiles()), policy, kAnyLink);
  EXPECT_EQ(content.encoded, 120) << "the encoded bytes of the other tensor";
  EXPECT_EQ(content.reloaded, 400);
  EXPECT_EQ(content.working, 5000);
  EXPECT_EQ(content.total, 1000 + 120 + 400 + 5000);
}

/// Recomputes 400 bytes from the 300 saved before them, with 50 temporary bytes. The step program frees its
/// own.
StepProgram recomputed_layer() {
  ProgramSketch sketch(1000);
  const std::int32_t x = sketch.alloc(300);
  const SavedId a = sketch.save(x);
  sketch.free(x);
  const std::int32_t y = sketch.alloc(400);
  const SavedId b = sketch.save(y);
  sketch.free(y);
  const std::int32_t large = sketch.alloc(5000);
  sketch.free(large);
  sketch.node(b);
  sketch.node(a);
  sketch.backward_end();
  StepProgram program = sketch.program();
  for (SavedTensor& saved : program.saved) saved.layout = TensorLayout{"float32", {10, 10}, {10, 1}};
  program.recomputations = {{b, "aten::gelu", {a}, {{{400, -1}, {50, -1}, {0, 1}}, 13}}};
  return program;
}

TEST(ReplayRules, ARecomputedTensorTakesNoMemoryUntilItIsRecomputed) {
  const StepProgram program = recomputed_layer();
  const Step step(program);
  const Prediction prediction = replay(step, ruled("recompute"), kAnyLink);
  EXPECT_EQ(prediction.metrics.device_peak_bytes, 1000 + 300 + 5000);
  EXPECT_EQ(prediction.metrics.step_time_ns, 13);
  EXPECT_EQ(prediction.metrics.compute_ns, 13);
  EXPECT_EQ(prediction.metrics.d2h_bytes, 0);
  EXPECT_EQ(prediction.metrics.h2d_bytes, 0);
}

TEST(ReplayRules, RecomputingTakesTheMeasuredMemory) {
  StepProgram program = recomputed_layer();
  std::erase_if(program.events, [](const Event& event) { return event.id == 2; });
  program.storages[2].bytes = 0;
  const Step step(program);
  EXPECT_EQ(replay(step, ruled("recompute"), kAnyLink).metrics.device_peak_bytes, 1000 + 300 + 400 + 50);
}

TEST(ReplayRules, TheLedgerNamesRecomputedTensorsAndThoseThatCannotBe) {
  const StepProgram program = recomputed_layer();
  EXPECT_EQ(replay_ledger(program, Step(program), ruled("recompute")),
            (Ledger{{{Place::kDevice, PlacementReason::kUnfitToRecompute}, {1, 300}},
                    {{Place::kRecompute, PlacementReason::kRule}, {1, 400}}}));
}

TEST(ReplayRules, ARecomputedTensorCountsAsReloadedAtThePeak) {
  StepProgram program = recomputed_layer();
  std::erase_if(program.events, [](const Event& event) { return event.id == 2; });
  const DeviceContent content = content_at_peak(Step(program), ruled("recompute"), kAnyLink);
  EXPECT_EQ(content.kept, 300);
  EXPECT_EQ(content.total, 1750);
}

}  // namespace
}  // namespace offprof
