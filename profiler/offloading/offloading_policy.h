#pragma once

#include <string>

#include "traces/format/policy_io.h"

namespace offprof {

/// Loads a policy for ProgramOffloading. `base` is a preset or the path of a policy file. `settings` is a
/// JSON object with members of a policy that replace those of `base`; sizes may be strings, such as `1MiB`.
/// With settings the file's predicted figures do not hold, so the result has none.
///
/// Throws Error (input) for what load_policy and policy_from_json reject, and for a policy that
/// ProgramOffloading cannot carry out: one that uses a disk, encodes, recomputes, or offloads parameters.
PolicyFile offloading_policy(const std::string& base, const std::string& settings);

}  // namespace offprof
