#pragma once

#include "simulator/other_engines/engine_export.h"

namespace offprof {

/// Exports to the `OffloadActivations` of TRL and of torchtune, whose rules SchedulerKind::kTrl has.
EngineExport export_to_trl(const ExportRequest& request);
EngineExport export_to_torchtune(const ExportRequest& request);

/// Exports to PyTorch's own parts: selective activation checkpointing for recomputed tensors,
/// `apply_activation_checkpointing` for checkpointed modules, and `save_on_cpu` for tensors that move.
EngineExport export_to_pytorch(const ExportRequest& request);
/// Adds `fully_shard` to the same, with its offload of parameters.
EngineExport export_to_fsdp2(const ExportRequest& request);

/// Exports to the arguments of transformers' Trainer, or to offprof's callback for it.
EngineExport export_to_transformers(const ExportRequest& request);

/// Exports to a fragment of DeepSpeed's configuration file.
EngineExport export_to_deepspeed(const ExportRequest& request);

/// Exports to flags of Megatron-LM.
EngineExport export_to_megatron(const ExportRequest& request);

}  // namespace offprof
