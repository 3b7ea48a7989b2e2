#pragma once

#include <string>

#include "engine/devices/device.h"

namespace offprof {

/// Returns the only device of this test program, `host` or `virtual`, with the autograd engine in place. One
/// thread computes, so that no run starts threads later than another.
Device& device_under_test();
std::string device_under_test_name();

}  // namespace offprof
