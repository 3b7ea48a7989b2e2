#include "simulator/other_engines/engine_export.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "simulator/steps/trace_steps.h"
#include "tests/support/layered_trace.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

/// Exports a policy for the step of a trace.
class Exporter {
 public:
  explicit Exporter(Trace trace) : trace_(std::move(trace)), steps_(trace_) {}

  EngineExport to(std::string_view target, const PolicyFile& file) const {
    const auto entry = std::ranges::find(export_targets(), target, &ExportTarget::name);
    const PolicyUse use(steps_.program(file.policy), steps_.step(file.policy), file.policy);
    return entry->make({name_, file, trace_, use});
  }
  EngineExport to(std::string_view target, const Policy& policy) const {
    return to(target, PolicyFile{policy, std::nullopt, {}});
  }

 private:
  std::string name_ = "policy.json";
  Trace trace_;
  TraceSteps steps_;
};

Exporter two_layers() {
  return Exporter(layered_trace({{"layers.0.attn", 4096},
                                 {"layers.0.mlp", 8192},
                                 {"layers.1.attn", 4096},
                                 {"layers.1.mlp", 8192},
                                 {"lm_head", 2048}}));
}

Policy with_threshold(Bytes threshold) {
  Policy policy;
  policy.threshold_bytes = threshold;
  policy.stash_count = 3;
  return policy;
}

Policy with_rules(std::vector<PolicyRule> rules, std::optional<Bytes> threshold = std::nullopt) {
  Policy policy;
  policy.threshold_bytes = threshold;
  policy.rules = std::move(rules);
  return policy;
}

const Placement kHost{.place = Place::kHost};

TEST(EngineExport, ThresholdAndStashBecomeTheArgumentsOfTrl) {
  EXPECT_EQ(two_layers().to("trl", with_threshold(65536 / 16)).snippet,
            R"(from trl.models.activation_offloading import OffloadActivations


def offload_activations(model):
    """Returns the context for forward and loss. Call it once, before training."""
    return OffloadActivations(
        use_pin_memory=True,
        use_streams=True,
        min_offload_size=4096,
        max_fwd_stash_size=3,
    )


# A loop: with offload_activations(model): loss = ...
# A trainer: trainer.maybe_activation_offload_context = offload_activations(trainer.model)
)");
}

TEST(EngineExport, RulesThatKeepModulesBecomeANoOpManager) {
  const EngineExport result =
      two_layers().to("torchtune", with_rules({{.module = "*lm_head", .placement = {}}}, 1024));
  EXPECT_EQ(result.snippet, R"(from torchtune.training import NoOpManager, OffloadActivations

# Modules whose saved tensors stay on the device.
KEPT = [
    "lm_head",
]


def offload_activations(model):
    """Returns the context for forward and loss. Call it once, before training."""
    keep = NoOpManager()
    for path in KEPT:
        for module in model.get_submodule(path).modules():
            module.register_forward_pre_hook(lambda *_: keep.__enter__())
            module.register_forward_hook(lambda *_: keep.__exit__(), always_call=True)
    return OffloadActivations(
        use_pin_memory=True,
        use_streams=True,
        min_offload_size=1024,
        max_fwd_stash_size=1,
    )


# A loop: with offload_activations(model): loss = ...
# A recipe: self.activations_handling_ctx = offload_activations(self._model)
)");
}

TEST(EngineExport, TrlIsSimulatedUnderItsOwnRulesWithTheExportedSettings) {
  const EngineExport result =
      two_layers().to("trl", with_rules({{.module = "layers.1*", .placement = {}}}, 2048));
  Policy expected = preset_policy("trl");
  expected.threshold_bytes = 2048;
  expected.stash_count = 1;
  expected.rules = {{.module = "layers.1", .placement = {}}, {.module = "layers.1.*", .placement = {}}};
  EXPECT_EQ(result.simulated, expected);
}

TEST(EngineExport, APlanBecomesItsSmallestTensorAndWholeModules) {
  Policy policy;
  policy.tensors = {1, 3};
  const EngineExport result = two_layers().to("trl", policy);
  EXPECT_EQ(result.settings["min_offload_size"], 8192);
  // The tensors of all other modules are smaller.
  EXPECT_EQ(result.settings["kept_modules"], nlohmann::ordered_json::array());
  policy.tensors = {0, 1};
  EXPECT_EQ(two_layers().to("trl", policy).settings["kept_modules"],
            nlohmann::ordered_json::array({"layers.1"}));
}

TEST(EngineExport, SaysWhatTrlLacks) {
  Policy policy = with_threshold(1024);
  policy.stash_count.reset();
  policy.stash_bytes = 4 * kMiB;
  policy.prefetch_bytes = 64 * kMiB;
  policy.host_memory_bytes = kGiB;
  const std::vector<std::string> differences = two_layers().to("trl", policy).differences;
  EXPECT_THAT(differences, Contains("TRL has no prefetch window; the policy's is 64.0 MiB."));
  EXPECT_THAT(differences, Contains("TRL has no limit of host memory; the policy's is 1.00 GiB."));
  EXPECT_THAT(differences, Contains("The stash of TRL has no limit in bytes; the policy's is 4.00 MiB."));
  EXPECT_THAT(differences, Contains("The stash of TRL has at least one tensor."));
}

TEST(EngineExport, TheRulesOfTrlHaveNoDifference) {
  EXPECT_THAT(two_layers().to("trl", preset_policy("trl")).differences, IsEmpty());
}

TEST(EngineExport, RefusesAPolicyThatMovesNothing) {
  EXPECT_THROW(two_layers().to("trl", preset_policy("keep")), Error);
  EXPECT_THROW(two_layers().to("pytorch", preset_policy("keep")), Error);
  EXPECT_THROW(two_layers().to("transformers", preset_policy("keep")), Error);
}

TEST(EngineExport, QuotesTheNamesOfModules) {
  const Exporter exporter(layered_trace({{"a\"]\nimport os", 2048}, {"b", 2048}}));
  const std::string snippet = exporter.to("trl", with_rules({{.module = "b", .placement = kHost}})).snippet;
  EXPECT_THAT(snippet, HasSubstr(R"(    "a\"]\nimport os",)"));
}

TEST(EngineExport, MovedTensorsBecomeSaveOnCpu) {
  const EngineExport result = two_layers().to("pytorch", with_threshold(0));
  EXPECT_EQ(result.snippet, R"(from torch.autograd.graph import save_on_cpu


def offload_activations():
    """Returns the context for forward and loss."""
    return save_on_cpu(pin_memory=True)
)");
  EXPECT_FALSE(result.simulated);
  EXPECT_THAT(result.no_figures, HasSubstr("Add --record"));
}

TEST(EngineExport, ModulesThatMoveBecomeOffloadWrappers) {
  const EngineExport result =
      two_layers().to("pytorch", with_rules({{.module = "layers.0.*", .placement = kHost}}));
  EXPECT_EQ(result.snippet, R"(from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
    offload_wrapper,
)

# Modules whose saved tensors wait in host memory.
OFFLOADED = [
    "layers.0",
]


def offload_activations(model):
    """Wraps the modules. Call it once, after the model is made."""
    modules = {model.get_submodule(path) for path in OFFLOADED}
    apply_activation_checkpointing(
        model,
        checkpoint_wrapper_fn=offload_wrapper,
        check_fn=lambda module: module in modules,
    )
)");
}

/// Returns a step in which gelu makes the second tensor from the first one.
Exporter with_gelu() {
  Trace trace = layered_trace({{"layers.0.mlp.up", 4096}, {"layers.0.mlp.down", 4096}});
  trace.program.recomputations = {{1, "aten::gelu", {0}, {{{4096, -1}}, 13}}};
  return Exporter(std::move(trace));
}

Policy recompute_down() {
  return with_rules({{.module = "*.down", .placement = {.place = Place::kRecompute}}});
}

TEST(EngineExport, RecomputedTensorsBecomeSelectiveCheckpointing) {
  EXPECT_EQ(with_gelu().to("pytorch", recompute_down()).snippet, R"(import functools

import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    apply_activation_checkpointing,
    checkpoint_wrapper,
)
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

# Modules with recomputed tensors.
RECOMPUTED = [
    "layers.0",
]
# Operators whose results backward computes again.
RECOMPUTED_OPS = [
    torch.ops.aten.gelu,
]


def save_or_recompute(context, op, *args, **kwargs):
    """Recomputes the results of RECOMPUTED_OPS, and saves those of all other operators."""
    recompute = getattr(op, "overloadpacket", op) in RECOMPUTED_OPS
    return CheckpointPolicy.PREFER_RECOMPUTE if recompute else CheckpointPolicy.MUST_SAVE


def checkpoint_selectively(model):
    """Wraps the modules. Call it once, after the model is made."""
    context = functools.partial(create_selective_checkpoint_contexts, save_or_recompute)
    modules = {model.get_submodule(path) for path in RECOMPUTED}
    apply_activation_checkpointing(
        model,
        checkpoint_wrapper_fn=functools.partial(checkpoint_wrapper, context_fn=context),
        check_fn=lambda module: module in modules,
    )
)");
}

TEST(EngineExport, RefusesOperatorNamesThatAreNotPython) {
  Trace trace = layered_trace({{"a.0", 4096}, {"a.1", 4096}});
  trace.program.recomputations = {{1, "aten::x); import os", {0}, {{{4096, -1}}, 13}}};
  const Exporter exporter(std::move(trace));
  const EngineExport result =
      exporter.to("pytorch", with_rules({{.module = "a.1", .placement = {.place = Place::kRecompute}}}));
  EXPECT_EQ(result.settings["recompute_ops"], nlohmann::ordered_json::array());
}

TEST(EngineExport, CheckpointedModulesOfTheTraceBecomeAList) {
  Trace trace = layered_trace({{"layers.0", 2048, "offprof::checkpoint"}, {"head", 512}});
  trace.settings.checkpointed = {"layers.0", "layers.1"};
  const EngineExport result = Exporter(std::move(trace)).to("pytorch", preset_policy("keep"));
  EXPECT_THAT(result.snippet, HasSubstr("CHECKPOINTED = [\n    \"layers.0\",\n    \"layers.1\",\n]"));
  EXPECT_THAT(result.snippet, HasSubstr("checkpoint_wrapper_fn=checkpoint_wrapper"));
}

TEST(EngineExport, PatternsOfCheckpointedModulesAreResolvedInPython) {
  Trace trace = layered_trace({{"layers.0", 2048}});
  trace.settings.checkpointed = {"layers.*", "head"};
  const EngineExport result = Exporter(std::move(trace)).to("pytorch", preset_policy("keep"));
  EXPECT_THAT(result.snippet, StartsWith("import fnmatch\n\nfrom torch"));
  EXPECT_THAT(result.snippet, HasSubstr("CHECKPOINTED = [\n    \"layers.*\",\n    \"head\",\n]"));
  EXPECT_THAT(result.snippet,
              HasSubstr("and any(fnmatch.fnmatchcase(path, pattern) for pattern in CHECKPOINTED)"));
}

TEST(EngineExport, SelectiveCheckpointingDoesNotNestWithCheckpointedModules) {
  const auto exported = [](const char* op, const char* checkpointed) {
    Trace trace = layered_trace({{checkpointed, 2048, op}, {"blocks", 4096}, {"layers.1.down", 4096}});
    trace.program.recomputations = {{1, "aten::add", {0}, {{{4096, -1}}, 13}},
                                    {2, "aten::gelu", {0}, {{{4096, -1}}, 13}}};
    trace.settings.checkpointed = {checkpointed};
    return Exporter(std::move(trace))
        .to("pytorch", with_rules({{.placement = {.place = Place::kRecompute}}}));
  };
  for (const char* op : {"offprof::checkpoint", "_NoopSaveInputs"}) {
    SCOPED_TRACE(op);
    const EngineExport inner = exported(op, "blocks.layer0");
    EXPECT_EQ(inner.settings["recompute_modules"], nlohmann::ordered_json({"layers.1"}));
    EXPECT_THAT(inner.differences, Contains(HasSubstr("nothing is recomputed by operator in blocks.")));
    EXPECT_EQ(exported(op, "layers.1").settings["recompute_modules"], nlohmann::ordered_json({"blocks"}));
  }
}

TEST(EngineExport, SaveOnCpuIsNotWithinSelectiveCheckpointing) {
  Trace trace = layered_trace(
      {{"layers.0.up", 4096}, {"layers.0.down", 4096}, {"layers.1.up", 4096}, {"layers.0.norm", 4096}});
  trace.program.recomputations = {{1, "aten::gelu", {0}, {{{4096, -1}}, 13}}};
  const Exporter exporter(std::move(trace));
  const EngineExport result = exporter.to(
      "pytorch", with_rules({{.module = "layers.0.down", .placement = {.place = Place::kRecompute}},
                             {.module = "layers.0.norm", .placement = {.place = Place::kDevice}},
                             {.placement = kHost}}));
  EXPECT_EQ(result.settings["recompute_modules"], nlohmann::ordered_json({"layers.0"}));
  EXPECT_EQ(result.settings["offload_modules"], nlohmann::ordered_json({"layers.1"}));
  EXPECT_THAT(result.differences, Contains(HasSubstr("so no tensors of layers.0.up move.")));
}

TEST(EngineExport, TransformersRunsHostPoliciesThroughTheCallback) {
  const EngineExport result = two_layers().to("transformers", with_threshold(1024));
  EXPECT_EQ(result.snippet, R"(from offprof.integrations.transformers import OffloadCallback

offloading = OffloadCallback("policy.json")
# trainer = Trainer(..., callbacks=[offloading])
)");
  EXPECT_EQ(result.simulated, with_threshold(1024));
}

TEST(EngineExport, TransformersCheckpointsForRecomputedTensors) {
  const EngineExport result = with_gelu().to("transformers", recompute_down());
  EXPECT_EQ(result.snippet, R"(from transformers import TrainingArguments

training_args = TrainingArguments(
    output_dir="output",
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": False},
)
)");
  EXPECT_FALSE(result.simulated);
}

TEST(EngineExport, DeepSpeedHasOneSwitchForActivations) {
  const EngineExport result = two_layers().to("deepspeed", with_threshold(1024));
  EXPECT_EQ(result.snippet, R"({
  "activation_checkpointing": {
    "partition_activations": false,
    "contiguous_memory_optimization": false,
    "cpu_checkpointing": true
  }
}
)");
  EXPECT_THAT(result.differences, Contains(HasSubstr("no checkpointed modules")));
  EXPECT_EQ(result.no_figures, "offprof does not model DeepSpeed's rules.");
}

TEST(EngineExport, DeepSpeedCountsParametersInElements) {
  PolicyFile file{with_threshold(1024), std::nullopt, {}};
  file.parameters = ParameterSettings{"host", 4000};
  Trace trace = layered_trace({{"a", 2048}});
  trace.model.parameters = 3000;
  trace.model.parameter_bytes = 6000;
  const EngineExport result = Exporter(std::move(trace)).to("deepspeed", file);
  EXPECT_EQ(result.settings["zero_optimization"]["stage3_max_live_parameters"], 2000);
  EXPECT_EQ(result.settings["zero_optimization"]["offload_param"]["device"], "cpu");
}

TEST(EngineExport, MegatronCountsElementsAndNamesItsModules) {
  const Exporter exporter(
      layered_trace({{"decoder.layers.0.self_attention.core_attention", 4096, "aten::mm", "bfloat16"},
                     {"decoder.layers.0.pre_mlp_layernorm", 4096, "aten::mm", "bfloat16"},
                     {"decoder.layers.0.mlp.linear_fc2", 1024, "aten::mm", "bfloat16"}}));
  const EngineExport result = exporter.to("megatron", with_threshold(4095));
  EXPECT_EQ(result.snippet,
            "--fine-grained-activation-offloading \\\n"
            "--offload-modules core_attn mlp_norm \\\n"
            "--min-offloaded-tensor-size 2048\n");
  EXPECT_EQ(result.no_figures, "offprof does not model Megatron-LM's rules.");
}

TEST(EngineExport, MegatronMovesTheInputOfAProjectionOnlyWithTheAttention) {
  const Exporter exporter(layered_trace({{"decoder.layers.0.self_attention.linear_proj", 4096}}));
  const EngineExport result = exporter.to("megatron", with_threshold(0));
  EXPECT_EQ(result.settings["offload_modules"], nlohmann::ordered_json::array({"core_attn", "attn_proj"}));
  EXPECT_THAT(result.differences, Contains("attn_proj needs core_attn, which the policy does not move."));
}

TEST(EngineExport, MegatronRefusesModulesThatItDoesNotHave) {
  EXPECT_THROW(Exporter(layered_trace({{"conv1", 4096}})).to("megatron", with_threshold(0)), Error);
}

TEST(EngineExport, Fsdp2ShardsBlocksAndOffloadsParameters) {
  PolicyFile file{with_rules({{.module = "layers.0.*", .placement = kHost}}), std::nullopt, {}};
  file.parameters = ParameterSettings{"host", std::nullopt};
  const EngineExport result = two_layers().to("fsdp2", file);
  EXPECT_THAT(result.snippet,
              HasSubstr("from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard\n"));
  EXPECT_THAT(result.snippet, HasSubstr(R"(
# Units of fully_shard. Shard after the modules are wrapped.
SHARDED = [
    "layers.0",
    "layers.1",
    "lm_head",
]


def shard(model):
    """Shards the modules, then the rest of the model."""
    for path in SHARDED:
        fully_shard(model.get_submodule(path), offload_policy=CPUOffloadPolicy(pin_memory=True))
    fully_shard(model, offload_policy=CPUOffloadPolicy(pin_memory=True))
)"));
  EXPECT_THAT(result.no_figures, HasSubstr("does not model sharding"));
}

}  // namespace
}  // namespace offprof
