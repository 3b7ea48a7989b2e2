#include "simulator/steps/cache_replay.h"

#include <gtest/gtest.h>

#include "simulator/replay/replay.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

constexpr Bytes kParameters = 3 * kMiB;

/// Returns a step program whose allocator holds one resident block in a segment of 20 MiB.
StepProgram on_gpu(StepProgram program) {
  AllocatorState& allocator = program.allocator.emplace();
  allocator.segments.push_back(
      {0, true, false, {{kParameters, kParameters, true, -1}, {20 * kMiB - kParameters, 0, false, -1}}});
  return program;
}

/// Returns a step program that leaves a saved tensor to the next step.
StepProgram carrying_step() {
  ProgramSketch sketch(kParameters + 30 * kMiB);
  const auto before = sketch.resident(30 * kMiB);
  const auto left = sketch.alloc(30 * kMiB);
  sketch.save(left);
  sketch.free(left);
  sketch.free(before);
  StepProgram program = on_gpu(sketch.program());
  program.allocator->segments.push_back({0, true, false, {{30 * kMiB, 30 * kMiB, true, before}}});
  program.renewals = {{before, left}};
  return program;
}

CachePrediction predict(const StepProgram& program, const std::string& policy,
                        const CacheSetting& setting = {}) {
  return *predict_cache(Step(program), preset_policy(policy), setting);
}

TEST(PredictCache, IsAbsentForADeviceWithoutAllocator) {
  EXPECT_FALSE(predict_cache(Step(ChainSketch::program(2, kMiB)), preset_policy("keep"), {}).has_value());
}

TEST(PredictCache, CountsWholeBlocksAndWholeSegments) {
  ProgramSketch sketch;
  const auto small = sketch.alloc(1000), large = sketch.alloc(2 * kMiB + 1);
  sketch.free(large);
  sketch.free(small);
  const CachePrediction prediction = predict(on_gpu(sketch.program()), "keep");
  EXPECT_EQ(prediction.use.allocated_peak_bytes, kParameters + 1024 + 2 * kMiB + 512);
  EXPECT_EQ(prediction.use.reserved_peak_bytes, 20 * kMiB + 2 * kMiB);
  EXPECT_TRUE(prediction.fits);
}

TEST(PredictCache, MemoryFreedOnOneStreamServesThatStreamOnly) {
  ProgramSketch sketch;
  const auto gathered = sketch.alloc(30 * kMiB);
  sketch.free(gathered);
  sketch.free(sketch.alloc(30 * kMiB));
  StepProgram program = on_gpu(sketch.program());
  EXPECT_EQ(predict(program, "keep").use.reserved_peak_bytes, 50 * kMiB);
  program.storages[gathered].stream = kFirstOtherStream;
  EXPECT_EQ(predict(program, "keep").use.reserved_peak_bytes, 80 * kMiB);
}

TEST(PredictCache, MemoryThatAnotherStreamMayUseServesNobodyButIsNotAllocated) {
  ProgramSketch sketch;
  const auto gradient = sketch.alloc(30 * kMiB);
  sketch.request_free(gradient);
  const auto next = sketch.alloc(30 * kMiB);
  sketch.free(gradient);
  sketch.free(next);
  const CachePrediction prediction = predict(on_gpu(sketch.program()), "keep");
  EXPECT_EQ(prediction.use.allocated_peak_bytes, kParameters + 30 * kMiB);
  EXPECT_EQ(prediction.use.reserved_peak_bytes, 80 * kMiB);
}

TEST(PredictCache, ARequestToFreeWhatTheEngineHoldsHasNoEffect) {
  ProgramSketch sketch;
  const auto activation = sketch.alloc(30 * kMiB);
  const SavedId saved = sketch.save(activation);
  sketch.request_free(activation);
  sketch.free(activation);
  sketch.free(sketch.alloc(30 * kMiB));
  sketch.node(saved);
  EXPECT_EQ(predict(on_gpu(sketch.program()), "keep").use.allocated_peak_bytes, kParameters + 60 * kMiB);
}

TEST(PredictCache, WhatWaitsAtTheEndOfAStepIsFreeInTheNext) {
  ProgramSketch sketch;
  sketch.request_free(sketch.alloc(30 * kMiB));
  const CachePrediction prediction = predict(on_gpu(sketch.program()), "keep", {.steps = 4});
  EXPECT_EQ(prediction.use.reserved_peak_bytes, 50 * kMiB);
}

TEST(PredictCache, AStepMayFreeWhatTheLastOneRequestedToFree) {
  ProgramSketch sketch;
  const auto older = sketch.resident(kParameters);
  sketch.request_free(older);
  const auto gradient = sketch.alloc(kParameters);
  sketch.free(older);
  sketch.request_free(gradient);
  StepProgram program = on_gpu(sketch.program());
  program.allocator->segments[0].blocks[0].storage = older;
  const CachePrediction prediction = predict(program, "keep", {.steps = 4});
  EXPECT_EQ(prediction.use.allocated_peak_bytes, kParameters);
  EXPECT_EQ(prediction.use.reserved_peak_bytes, 20 * kMiB);
}

TEST(PredictCache, ReloadsWithoutBytesTakeNoBlock) {
  Policy policy = preset_policy("offload");
  policy.threshold_bytes = 0;
  const StepProgram program = on_gpu(ChainSketch::program(8, 0));
  EXPECT_EQ(predict_cache(Step(program), policy, {})->use.allocated_peak_bytes, kParameters);
}

TEST(PredictCache, OffloadingLowersReservedMemory) {
  const StepProgram program = on_gpu(ChainSketch::program(8, 30 * kMiB));
  EXPECT_LT(predict(program, "offload").use.reserved_peak_bytes,
            predict(program, "keep").use.reserved_peak_bytes);
}

TEST(PredictCache, FollowsTheCacheFromStepToStep) {
  // The first step requests the small block first, which splits a block; the second step finds both cached.
  const StepProgram program = on_gpu(ChainSketch::program(5, 12 * kMiB));
  const Bytes first = predict(program, "offload", {.steps = 1}).use.reserved_peak_bytes;
  const Bytes many = predict(program, "offload", {.steps = 1000000}).use.reserved_peak_bytes;
  EXPECT_GE(many, first);
}

TEST(PredictCache, MemoryHeldAtTheBeginningMustFitToo) {
  ProgramSketch sketch;
  sketch.free(sketch.alloc(kMiB * 5));
  const StepProgram program = on_gpu(sketch.program());
  EXPECT_TRUE(predict(program, "keep", {1, 20 * kMiB}).fits);
  EXPECT_FALSE(predict(program, "keep", {1, 20 * kMiB - 1}).fits);
  EXPECT_EQ(predict(program, "keep", {1, 20 * kMiB - 1}).use.reserved_peak_bytes, 20 * kMiB);
}

TEST(PredictCache, ReportsAMisfitAndTheMemoryNeeded) {
  const StepProgram program = on_gpu(ChainSketch::program(4, 30 * kMiB));
  const CachePrediction all = predict(program, "keep");
  const Bytes needed = all.use.reserved_peak_bytes;
  EXPECT_TRUE(predict(program, "keep", {1, needed}).fits);
  const CachePrediction refused = predict(program, "keep", {1, needed - 2 * kMiB});
  EXPECT_FALSE(refused.fits);
  EXPECT_EQ(refused.use.reserved_peak_bytes, needed);
}

TEST(PredictCache, SettingsFractionsReferToTheTotalDeviceMemory) {
  StepProgram program = on_gpu(ChainSketch::program(4, 30 * kMiB));
  const Bytes needed = predict(program, "keep").use.reserved_peak_bytes;
  program.allocator->settings = "per_process_memory_fraction:0.5";
  EXPECT_TRUE(predict(program, "keep", {1, needed, 2 * needed}).fits);
  EXPECT_TRUE(predict(program, "keep", {1, std::nullopt, 2 * needed}).fits);
  const CachePrediction refused = predict(program, "keep", {1, needed, 2 * needed - 4 * kMiB});
  EXPECT_FALSE(refused.fits);
  EXPECT_EQ(refused.use.reserved_peak_bytes, needed);
}

TEST(PredictCache, GarbageCollectionRefersToTheTotalDeviceMemory) {
  // Cached blocks of 30 MiB do not serve the larger one that follows.
  ProgramSketch sketch;
  for (const Bytes bytes : {30 * kMiB, 40 * kMiB, 50 * kMiB}) sketch.free(sketch.alloc(bytes));
  StepProgram program = on_gpu(sketch.program());
  program.allocator->settings = "per_process_memory_fraction:0.5,garbage_collection_threshold:0.5";
  EXPECT_EQ(predict(program, "keep", {1, kGiB, 8 * kGiB}).use.reserved_peak_bytes, 140 * kMiB);
  EXPECT_EQ(predict(program, "keep", {1, kGiB, 300 * kMiB}).use.reserved_peak_bytes, 110 * kMiB);
}

TEST(PredictCache, ABlockThatAStepLeavesReplacesTheFreedResident) {
  ProgramSketch sketch;
  const auto old = sketch.resident(kParameters);
  sketch.alloc(kParameters);
  sketch.free(old);
  StepProgram program = on_gpu(sketch.program());
  program.allocator->segments[0].blocks[0].storage = old;
  const CachePrediction prediction = predict(program, "keep", {.steps = 100});
  EXPECT_EQ(prediction.use.allocated_peak_bytes, 2 * kParameters);
  EXPECT_EQ(prediction.use.reserved_peak_bytes, 20 * kMiB);
}

TEST(PredictCache, FollowsATensorThatOutlivesItsStep) {
  const StepProgram program = carrying_step();
  const CacheSetting setting{.steps = 3};
  EXPECT_EQ(predict(program, "keep", setting).use.allocated_peak_bytes, kParameters + 60 * kMiB);
  Policy offload = preset_policy("offload");
  offload.stash_count = 0;
  // The first step, which is not measured, finds the tensor of a step that has offloaded nothing.
  const CacheUse use = predict_cache(Step(program), offload, setting)->use;
  EXPECT_EQ(use.allocated_peak_bytes, kParameters + 30 * kMiB);
  EXPECT_EQ(use.reserved_peak_bytes, 20 * kMiB + 60 * kMiB);
}

TEST(PredictCache, ABlockThatWaitsForStreamsReplacesNoResident) {
  ProgramSketch sketch;
  const auto old = sketch.resident(kParameters);
  sketch.free(old);
  sketch.request_free(sketch.alloc(kParameters));
  sketch.alloc(kParameters);
  StepProgram program = on_gpu(sketch.program());
  program.allocator->segments[0].blocks[0].storage = old;
  const CachePrediction prediction = predict(program, "keep", {.steps = 4});
  EXPECT_EQ(prediction.use.allocated_peak_bytes, kParameters);
}

TEST(PredictCache, ADenseCopyOfAScatteredTensorTakesTemporaryMemory) {
  ProgramSketch sketch;
  const auto storage = sketch.alloc(64 * kMiB);
  const SavedId half = sketch.save_part(storage, 32 * kMiB);
  sketch.free(storage);
  sketch.node(half);
  StepProgram program = on_gpu(sketch.program());
  program.saved[0].layout = TensorLayout{"float32", {1024, 8192}, {16384, 1}};
  Policy trl = preset_policy("trl");
  trl.stash_count = 0;
  const Step step(program);
  EXPECT_EQ(step.staging_bytes(half), 32 * kMiB);
  EXPECT_EQ(predict_cache(step, trl, {})->use.allocated_peak_bytes, kParameters + 64 * kMiB + 32 * kMiB);
  EXPECT_EQ(replay(step, trl, kAnyLink).metrics.device_peak_bytes, 64 * kMiB + 32 * kMiB);
}

TEST(PredictStep, AddsTheCacheToTheReplayedStep) {
  for (const StepProgram& program : {on_gpu(ChainSketch::program(5, 12 * kMiB)), carrying_step()})
    for (const char* policy : {"keep", "offload", "trl"}) {
      const Step step(program);
      const CacheSetting setting{.steps = 4};
      Metrics expected = replay(step, preset_policy(policy), setting.link).metrics;
      add_cache_use(predict_cache(step, preset_policy(policy), setting)->use, expected);
      EXPECT_EQ(predict_step(step, preset_policy(policy), setting), expected) << policy;
    }
}

TEST(PredictStep, WithoutAnAllocatorThereIsNoCache) {
  const Step step(ChainSketch::program(2, kMiB));
  const Metrics metrics = predict_step(step, preset_policy("keep"), {});
  EXPECT_EQ(metrics, replay(step, preset_policy("keep"), kAnyLink).metrics);
  EXPECT_EQ(predict_step_within(*metrics.device_peak_bytes, step, preset_policy("keep"), {}), metrics);
  EXPECT_EQ(predict_step_within(*metrics.device_peak_bytes - 1, step, preset_policy("keep"), {}),
            std::nullopt);
}

TEST(PredictStep, IsAbsentWhereItTakesMoreThanTheMost) {
  for (const StepProgram& program : {on_gpu(ChainSketch::program(5, 12 * kMiB)), carrying_step()})
    for (const char* policy : {"keep", "offload", "trl"})
      for (const std::optional<Bytes> device_memory : {std::optional<Bytes>(), std::optional(40 * kMiB)}) {
        const Step step(program);
        const CacheSetting setting{.steps = 4, .device_memory_bytes = device_memory};
        const Metrics metrics = predict_step(step, preset_policy(policy), setting);
        const Bytes taken = device_bytes_taken(metrics);
        EXPECT_EQ(predict_step_within(taken, step, preset_policy(policy), setting), metrics) << policy;
        EXPECT_EQ(predict_step_within(taken - 1, step, preset_policy(policy), setting), std::nullopt)
            << policy;
      }
}

}  // namespace
}  // namespace offprof
