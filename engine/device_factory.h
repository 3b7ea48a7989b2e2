#pragma once

#include <memory>
#include <string>

#include "engine/device.h"
#include "traces/link.h"

namespace offprof {

/// The device of a `--device` value, as RunRequest::device has it: `host`, `cuda`, `cuda:N`,
/// `virtual:PROFILE`. `link_cap` is for the host device. Throws Error: a name that there is none of (input),
/// a device that does not work here (environment), with what is missing.
std::unique_ptr<Device> make_device(const std::string& name, const Link& link_cap);

}  // namespace offprof
