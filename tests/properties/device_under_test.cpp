#include "tests/properties/device_under_test.h"

#include <ATen/Parallel.h>

#include <memory>

#include "engine/autograd/autograd_engine.h"
#include "tests/conformance/devices_under_test.h"

namespace offprof {

std::string device_under_test_name() {
  return devices_under_test().front();
}

Device& device_under_test() {
  static const std::unique_ptr<Device> device = [] {
    auto opened = open_device_under_test(device_under_test_name());
    install_autograd_engine();
    at::set_num_threads(1);
    return opened;
  }();
  return *device;
}

}  // namespace offprof
