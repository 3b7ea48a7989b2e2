#pragma once

#include <span>
#include <string>
#include <string_view>

#include "traces/model/step_program.h"
#include "traces/model/trace.h"

namespace offprof {

struct PlannedStep;
struct PolicyFile;

/// Returns a fingerprint of the bytes as 16 hexadecimal digits (64-bit FNV-1a). It shows whether two byte
/// sequences are the same. It offers no protection against deliberate collisions.
std::string fingerprint(std::string_view bytes);

/// Returns the fingerprint of a file's bytes, which are read in pieces. Throws Error (input) if the file
/// cannot be read.
std::string fingerprint_of_file(const std::string& path);

/// Returns a fingerprint of the model, inputs, loss, optimizer, checkpointed modules and layer slices of a
/// run. Two runs with the same fingerprint have the same step program.
std::string fingerprint_of_run(const ModelInfo& model, const RunSettings& settings);

/// Returns a fingerprint of the dtypes and sizes of the tensors that autograd saves in a step, in their
/// order. A plan, which numbers these tensors, holds for every step with the same fingerprint.
std::string fingerprint_of_saved(std::span<const SavedTensor> saved);

/// Returns the step of `trace` as that of a plan.
PlannedStep planned_step_of(const Trace& trace);

/// Returns the file of a policy that was found for the step of `trace`, with the figures that it is predicted
/// to have.
PolicyFile policy_file_for(const Trace& trace, const Policy& policy, const Metrics& predicted);

}  // namespace offprof
