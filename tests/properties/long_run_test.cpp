// Tests of many steps in a row, in which any leak of a step shows.
#include <gmock/gmock.h>
#include <malloc.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include "engine/checkpointing/checkpointed_modules.h"
#include "engine/models/archives/build.h"
#include "engine/models/model.h"
#include "engine/models/model_device.h"
#include "engine/parameters/parameter_offloader.h"
#include "engine/slices/layer_slices.h"
#include "engine/slices/microbatches.h"
#include "engine/storage/block_codec.h"
#include "profiler/training/trainer.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/conformance/disk_under_test.h"
#include "tests/conformance/inverted.h"
#include "tests/hazards/leftovers.h"
#include "tests/properties/device_under_test.h"
#include "tests/properties/options.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasOwnHeap = true;  ///< a sanitizer has its own heap, which keeps freed memory
#else
constexpr bool kHasOwnHeap = false;
#endif

/// Allowed growth of the C library's heap over a whole run. LibTorch's tables of names grow by some entries
/// when they are first used. A leak of 7 bytes per step exceeds this over 10000 steps.
constexpr Bytes kHeapAllowance = 64 * kKiB;
/// Allowed growth of the process: pages that the heap takes when its free memory moves; it never returns all
/// of them. A leak of 420 bytes per step exceeds this over 10000 steps.
constexpr Bytes kResidentAllowance = 4 * kMiB;
/// Additional growth with a disk: a bounce buffer for each piece in progress at once. They are created at
/// their first use, and kept.
constexpr Bytes kBounceBuffers = 16 * kMiB;

Bytes resident_set() {
  Bytes pages = 0, resident_pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

Bytes heap_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<Bytes>(info.uordblks + info.hblkhd);
}

/// Figures that must be the same after every step.
struct AfterStep {
  Bytes device_peak = 0, host_peak = 0, reserved = 0;
  std::size_t commands = 0;
  bool operator==(const AfterStep&) const = default;
};
std::ostream& operator<<(std::ostream& out, const AfterStep& after) {
  return out << "peaks of " << after.device_peak << " on the device, " << after.host_peak
             << " in host memory, " << after.reserved << " reserved; " << after.commands << " commands";
}

struct Growth {
  Bytes heap = 0, resident = 0;
};

/// Policy and kind of model of a long run: plain, with activation checkpointing, in layer slices, or with
/// parameter offload.
struct LongRun {
  std::string policy;  ///< a preset, or the place to which a rule sends all tensors
  std::string model = {};

  bool has(std::string_view what) const { return model.find(what) != std::string::npos; }
};

class LongRunTest : public testing::TestWithParam<LongRun> {
 protected:
  LongRunTest() {
    torch::jit::setGraphExecutorOptimize(false);  // as run_job does
    torch::jit::getProfilingMode() = false;
  }

  void SetUp() override {
    if (compresses(policy()))
      give_compressed_memory(device_);
    else
      give_disk(device_);
  }

  /// Loads a small model that has every kind of layer: a step takes a millisecond or two.
  Model model_on_device() {
    const TestFolder folder;
    const std::string path = folder / "model.pt";
    save_zoo_model("transformer",
                   {{"batch", 2}, {"seq", 12}, {"layers", 1}, {"width", 16}, {"heads", 2}, {"vocab", 20}},
                   /*seed=*/1, path, {});
    Model model = load_model(path);
    make_inputs(model, input_specs_in_archive(path));
    const c10::Device torch_device = device_.torch_device();
    if (GetParam().has("parameters")) {
      auto store = GetParam().has("parameters_on_disk") ? make_device_disk_parameter_store(device_)
                                                        : make_host_parameter_store(device_);
      offloader_.emplace(device_, std::move(store), kParametersWindow, /*least_bytes=*/1);
    }
    const auto adopt = [&](const at::Tensor& parameter) {
      if (offloader_) offloader_->adopt_parameter(parameter);
    };
    if (!torch_device.is_cpu()) move_to_device(model, torch_device, adopt);
    if (torch_device.is_cpu())
      for (const at::Tensor& parameter : model.module.parameters()) adopt(parameter);
    if (GetParam().has("checkpoint"))
      model.checkpointed =
          std::make_shared<CheckpointedModules>(model.module, std::vector<std::string>{"*"}, torch_device);
    if (GetParam().has("slices")) {
      const ParameterOffloader::Scope offloading(offloader_ ? &*offloader_ : nullptr);
      model.microbatches = 2;
      const auto microbatches = cut_into_microbatches(model.inputs, model.microbatches);
      model.slices = std::make_shared<LayerSlices>(model.module, microbatches.front(), 2, torch_device);
    }
    return model;
  }

  Trainer trainer_of(Model& model, const RunSettings& settings) {
    return {model, device_, settings, nullptr, offloader_ ? &*offloader_ : nullptr};
  }
  /// Learns the order in which a step uses the parameters.
  void learn() {
    if (offloader_) offloader_->learn();
  }

  /// Returns a policy with copies in both directions, a stash, a window, and sometimes a full host memory.
  static Policy policy() {
    const std::string& name = GetParam().policy;
    const bool has_rule = name != "offload" && name != "trl";
    Policy policy = preset_policy(has_rule ? "offload" : name);
    policy.threshold_bytes = 256;
    policy.stash_count = 3;
    if (has_rule) {
      policy.rules.emplace_back().placement = parse_placement(name);
      policy.disk_buffer_bytes = 4 * kKiB;
    }
    if (policy.scheduler == SchedulerKind::kOffload) {
      policy.prefetch_bytes = 8 * kKiB;
      policy.host_memory_bytes = 64 * kKiB;
    }
    return policy;
  }

  AfterStep step(Trainer& trainer) {
    const StepResult result = trainer.step(policy(), unrecorded_guide(policy()), Recording::kNone);
    const Bytes reserved = result.cache_use ? result.cache_use->reserved_peak_bytes : 0;
    return {result.device_peak_bytes, result.host_peak_bytes, reserved, result.commands.size()};
  }

  static constexpr Bytes kParametersWindow = 4 * kKiB;

  CountingDevice device_{device_under_test()};
  std::optional<ParameterOffloader> offloader_;
};

TEST_P(LongRunTest, EveryStepLeavesTheProcessUnchanged) {
  const int steps = Options::get().steps, warmup = steps / 5;
  Model model = model_on_device();
  RunSettings settings;
  settings.optimizer = "adamw";
  Trainer trainer = trainer_of(model, settings);
  for (int i = 0; i < warmup; ++i) {
    step(trainer);
    if (i == 1) learn();
  }
  const AfterStep first = step(trainer);
  const Leftovers left = leftovers_of(device_);
  const Growth before{heap_in_use(), resident_set()};
  for (int i = warmup + 1; i < steps; ++i) {
    ASSERT_EQ(step(trainer), first) << "step " << i;
    ASSERT_EQ(left_since(left, device_), "") << "step " << i;
  }
  const Growth grown{heap_in_use() - before.heap, resident_set() - before.resident};
  std::cout << steps << " steps, of which the first " << warmup << " warm up; after each: " << first
            << "\nsince then the heap grew by " << grown.heap << " bytes, the process by " << grown.resident
            << " of " << before.resident << "\n";
  if (!GetParam().has("parameters_on_host")) {
    EXPECT_EQ(left.host_bytes, 0);
  }
  // Values between slices with micro-batches go where the parameters are; the policy does not place them.
  EXPECT_EQ(first.host_peak > 0, !GetParam().has("slices_and_parameters"));
  EXPECT_THAT(hazards_seen(), testing::IsEmpty());
  if (kHasOwnHeap) return;
  const bool has_disk = uses_disk(policy()) || GetParam().has("parameters_on_disk");
  const Bytes buffers = has_disk ? kBounceBuffers : 0;
  EXPECT_LE(grown.heap, kHeapAllowance + buffers);
  EXPECT_LE(grown.resident, kResidentAllowance + buffers);
}

/// No step waits for autograd before the next one begins.
TEST_P(LongRunTest, AStepStartsWithoutMemoryOfThePreviousStep) {
  Model model = model_on_device();
  Trainer trainer = trainer_of(model, {});
  const auto resident = [&] {
    return trainer.step(policy(), unrecorded_guide(policy()), Recording::kNone).device_resident_bytes;
  };
  trainer.plain_step();  // creates the optimizer's state
  trainer.plain_step();
  learn();
  const Bytes first = resident();
  for (int i = 1; i < Options::get().steps / 5; ++i) ASSERT_EQ(resident(), first) << "step " << i;
}

/// Returns all runs that this build supports.
std::vector<LongRun> long_runs() {
  std::vector<LongRun> runs = {{"offload"},
                               {"trl"},
                               {"disk"},
                               {"inverted+host"},
                               {"inverted+disk"},
                               {"offload", "checkpoint"},
                               {"offload", "slices"},
                               {"offload", "parameters_on_host"},
                               {"disk", "parameters_on_disk"},
                               {"offload", "slices_and_parameters_on_host"},
                               {"offload", "slices_and_parameters_on_disk"}};
  if (has_block_codec()) runs.push_back({"compress"});
  return runs;
}

INSTANTIATE_TEST_SUITE_P(Policies, LongRunTest, testing::ValuesIn(long_runs()), [](const auto& run) {
  std::string name = run.param.policy;
  if (!run.param.model.empty()) name += "_" + run.param.model;
  std::ranges::replace(name, '+', '_');
  return name;
});

}  // namespace
}  // namespace offprof
