#include "tests/conformance/functional_mode_gpu.h"

#include <utility>

#include "engine/devices/factory/device_factory.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "tests/conformance/devices_under_test.h"

namespace offprof {

std::unique_ptr<Device> open_functional_mode_gpu(std::uint64_t seed) {
  VirtualGpuOptions options;
  options.profile = load_profile("h200");
  options.functional_mode = true;
  options.checks_streams = true;
  options.seed = seed;
  offprof_virtual_gpu()->configure(std::move(options));
  return make_device("virtual:h200", Link{});
}

std::vector<std::string> devices_under_test() {
  return {"virtual"};
}

std::unique_ptr<Device> open_device_under_test(const std::string&) {
  return open_functional_mode_gpu(/*seed=*/1);
}

std::vector<std::string> hazards_seen() {
  std::vector<std::string> lines;
  for (const StreamHazard& hazard : offprof_virtual_gpu()->take_hazards())
    lines.push_back(hazard.what + ": " + hazard.first + "; " + hazard.second);
  return lines;
}

}  // namespace offprof
