#pragma once

#include <memory>
#include <string>

#include "engine/devices/device.h"
#include "traces/model/link.h"

namespace offprof {

/// Creates the device of a `--device` value, as in RunRequest::device: `host`, `cuda`, `cuda:N`,
/// `virtual:PROFILE`. `link_cap` is for the host device. Throws Error (input) for an unknown name, and Error
/// (environment) for a device that does not work here, with what is missing.
std::unique_ptr<Device> make_device(const std::string& name, const Link& link_cap);

}  // namespace offprof
