#pragma once

#include "simulator/other_engines/engine_import.h"

namespace offprof {

/// Reads DeepSpeed's configuration, JSON: `activation_checkpointing.cpu_checkpointing` and
/// `zero_optimization.offload_param`. Ignores all other settings.
EngineImport import_from_deepspeed(const std::string& text, const std::string& path);

/// Reads flags of Megatron-LM from a command line or a shell script: those of offloading, of activation
/// recomputation, and the type of activations. Ignores all others.
EngineImport import_from_megatron(const std::string& text, const std::string& path);

/// Reads TRL's settings: a YAML or JSON file with `activation_offloading`, or Python code that calls
/// `OffloadActivations` with numbers as keyword arguments.
EngineImport import_from_trl(const std::string& text, const std::string& path);

}  // namespace offprof
