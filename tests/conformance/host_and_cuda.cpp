#include "engine/devices/factory/device_factory.h"
#include "tests/conformance/devices_under_test.h"

namespace offprof {

std::vector<std::string> devices_under_test() {
  return {"host", "cuda"};
}

std::unique_ptr<Device> open_device_under_test(const std::string& name) {
  return make_device(name, Link{});
}

std::vector<std::string> hazards_seen() {
  return {};
}

}  // namespace offprof
