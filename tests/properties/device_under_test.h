#pragma once

#include <string>

#include "engine/device.h"

namespace offprof {

/// The one device of this program, `host` or `virtual`, with the autograd engine in place. One thread
/// computes, so that no run is the first to start others.
Device& device_under_test();
std::string device_under_test_name();

}  // namespace offprof
