#pragma once

#include <string>

#include "engine/devices/device.h"
#include "traces/format/policy_io.h"

namespace offprof {

/// Loads a policy for ProgramOffloading. `base` is a preset or the path of a policy file. `settings` is a
/// JSON object with members of a policy that replace those of `base`; sizes may be strings, such as `1MiB`.
/// With settings the file's predicted figures do not hold, so the result has none.
///
/// Throws Error (input) for what load_policy and policy_from_json reject, and for a policy that
/// ProgramOffloading cannot carry out: one that offloads parameters.
PolicyFile offloading_policy(const std::string& base, const std::string& settings);

/// Opens the disk that the policy needs, if it needs one, unless an earlier call opened the same one.
/// `folder`: for the disk's file; empty for a policy that compresses. The disk stays open, since graphs may
/// outlive their steps. Called by one thread at a time. Throws Error (input) if `folder` does not fit the
/// policy, or if another disk is open, and what Device::open_disk throws.
void open_disk_for(const Policy& policy, Device& device, const std::string& folder);

}  // namespace offprof
