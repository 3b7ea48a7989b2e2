#include "simulator/other_engines/engine_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

EngineImport import_from(std::string_view source, const std::string& text) {
  return std::ranges::find(import_sources(), source, &ImportSource::name)->read(text, "config");
}

TEST(EngineImport, TrainersOfTrlHaveItsDefaultsAndKeepTheHead) {
  const EngineImport result = import_from("trl", "model_name: a/b  # comment\nactivation_offloading: true\n");
  EXPECT_EQ(result.policy, preset_policy("trl-trainer"));
  EXPECT_TRUE(result.has_engine_rules);
}

TEST(EngineImport, ATrainerWithoutOffloadingKeepsEverything) {
  EXPECT_EQ(import_from("trl", "activation_offloading: false\n").policy, preset_policy("keep"));
  EXPECT_EQ(import_from("trl", "learning_rate: 2.0e-4\n").policy, preset_policy("keep"));
}

TEST(EngineImport, ReadsSettingsOfTrlAsJson) {
  EXPECT_EQ(import_from("trl", R"({"activation_offloading": true})").policy, preset_policy("trl-trainer"));
}

TEST(EngineImport, ReadsTheArgumentsOfOffloadActivations) {
  const EngineImport result = import_from(
      "trl", "ctx = OffloadActivations(\n    min_offload_size=65_536,\n    max_fwd_stash_size=2,\n)\n");
  Policy expected = preset_policy("trl");
  expected.threshold_bytes = 65536;
  expected.stash_count = 2;
  EXPECT_EQ(result.policy, expected);
  EXPECT_TRUE(result.has_engine_rules);
  EXPECT_THAT(result.differences, IsEmpty());
}

TEST(EngineImport, ReadsTheKeptModulesOfExportedCode) {
  const EngineImport result =
      import_from("trl", "KEPT = [\n    \"lm_head\",\n]\nkeep = NoOpManager()\nOffloadActivations()\n");
  EXPECT_EQ(result.policy.rules, (std::vector<PolicyRule>{{.module = "lm_head", .placement = {}},
                                                          {.module = "lm_head.*", .placement = {}}}));
  EXPECT_TRUE(result.has_engine_rules);
}

TEST(EngineImport, SaysThatItDoesNotReadOtherKeptModules) {
  const EngineImport result = import_from("trl", "keep = NoOpManager()\nOffloadActivations()\n");
  EXPECT_FALSE(result.has_engine_rules);
  EXPECT_THAT(result.differences, Contains(HasSubstr("NoOpManager are not read")));
}

TEST(EngineImport, RefusesArgumentsThatAreNoNumbers) {
  EXPECT_THROW(import_from("trl", "OffloadActivations(min_offload_size=limit)"), Error);
  EXPECT_THROW(import_from("trl", "OffloadActivations(max_fwd_stash_size=0)"), Error);
  EXPECT_THROW(import_from("trl", "OffloadActivations(min_offload_size=1"), Error);
  EXPECT_THROW(import_from("trl", "activation_offloading: maybe\n"), Error);
}

TEST(EngineImport, CpuCheckpointingMovesTheInputsOfCheckpointedModules) {
  const EngineImport result =
      import_from("deepspeed", R"({"activation_checkpointing": {"cpu_checkpointing": true}})");
  Policy expected = preset_policy("keep");
  expected.name = "deepspeed";
  expected.stash_count = 2;
  expected.rules = {{.op = "offprof::checkpoint", .placement = {.place = Place::kHost}},
                    {.op = "_NoopSaveInputs", .placement = {.place = Place::kHost}}};
  EXPECT_EQ(result.policy, expected);
  EXPECT_FALSE(result.has_engine_rules);
  EXPECT_FALSE(result.parameters);
}

TEST(EngineImport, OffloadParamIsParameterOffload) {
  const auto parameters_on = [](const char* device) {
    return import_from("deepspeed", std::string(R"({"zero_optimization": {"offload_param": {"device": ")") +
                                        device + "\"}}}")
        .parameters;
  };
  EXPECT_EQ(parameters_on("cpu"), (ParameterSettings{"host", std::nullopt}));
  EXPECT_EQ(parameters_on("nvme"), (ParameterSettings{"disk", std::nullopt}));
  EXPECT_EQ(parameters_on("none"), std::nullopt);
}

TEST(EngineImport, SaysWhichSettingsOfDeepSpeedAreLeftOut) {
  const EngineImport result = import_from("deepspeed",
                                          R"({"activation_checkpointing": {"partition_activations": true},
          "zero_optimization": {"offload_optimizer": {"device": "cpu"}}})");
  EXPECT_THAT(result.differences, Contains("partition_activations is not part of a policy."));
  EXPECT_THAT(result.differences, Contains(HasSubstr("offload_optimizer without offload_param")));
}

TEST(EngineImport, RefusesADamagedDeepSpeedConfiguration) {
  EXPECT_THROW(import_from("deepspeed", "{"), Error);
  EXPECT_THROW(import_from("deepspeed", R"({"activation_checkpointing": {"cpu_checkpointing": 1}})"), Error);
  EXPECT_THROW(import_from("deepspeed", R"({"zero_optimization": {"offload_param": {"device": "tpu"}}})"),
               Error);
}

TEST(EngineImport, ElementsOfMegatronBecomeBytesOfItsType) {
  const auto least_bytes = [](const std::string& type) {
    const EngineImport result = import_from(
        "megatron", "torchrun pretrain_gpt.py \\\n  --fine-grained-activation-offloading " + type +
                        " \\\n --offload-modules mlp_norm --min-offloaded-tensor-size 1000  # comment\n");
    return result.policy.rules.front().min_bytes;
  };
  EXPECT_EQ(least_bytes("--bf16"), 2000);
  EXPECT_EQ(least_bytes(""), 4000);
}

TEST(EngineImport, ModulesOfMegatronBecomeRules) {
  const EngineImport result = import_from(
      "megatron", "--fine-grained-activation-offloading --offload-modules=core_attn --bf16 --lr 0.1");
  const auto rule = [](const char* module) {
    return PolicyRule{.module = module, .min_bytes = 2 * 1024 * 1024, .placement = {.place = Place::kHost}};
  };
  EXPECT_EQ(result.policy.rules,
            (std::vector<PolicyRule>{rule("*self_attention.core_attention"), rule("*self_attn")}));
  EXPECT_FALSE(result.policy.threshold_bytes);
}

TEST(EngineImport, LayersOfMegatronBecomeRules) {
  const EngineImport result = import_from("megatron", "--cpu-offloading --cpu-offloading-num-layers 2");
  std::vector<std::string> modules;
  for (const PolicyRule& rule : result.policy.rules) modules.push_back(*rule.module);
  EXPECT_THAT(modules, testing::ElementsAre("*layers.0", "*layers.0.*", "*layers.1", "*layers.1.*"));
}

TEST(EngineImport, RefusesFlagsThatMegatronRefuses) {
  EXPECT_THROW(import_from("megatron", "--fine-grained-activation-offloading"), Error);
  EXPECT_THROW(import_from("megatron", "--fine-grained-activation-offloading --offload-modules mlp"), Error);
  EXPECT_THROW(import_from("megatron", "--cpu-offloading-num-layers $LAYERS"), Error);
  EXPECT_THROW(import_from("megatron",
                           "--cpu-offloading-num-layers 2 --fine-grained-activation-offloading "
                           "--offload-modules core_attn"),
               Error);
}

TEST(EngineImport, SaysThatRecomputationBelongsToTheProgram) {
  EXPECT_THAT(import_from("megatron", "--recompute-granularity full").differences,
              Contains(HasSubstr("changes the step itself")));
}

}  // namespace
}  // namespace offprof
