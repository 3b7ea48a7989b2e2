#include "engine/devices/virtual_gpu/model/profile.h"

#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "tests/fuzz/fuzz.h"

/// Fuzzes GPU profiles, and the modelled times of kernels and copies.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  static const OpCall kProduct = {"aten::mm", {{"float32", {64, 64}, 16384}, {"float32", {64, 64}, 16384}}};
  return read_or_refuse([&] {
    const DeviceProfile profile = parse_profile(std::string(as_text(data, size)), "gpu.json");
    const KernelCost cost(profile, {});
    OFFPROF_CHECK(cost.time_of({"gemm"}, &kProduct, 16384, true).duration >= 0);
    for (const LinkDirection& direction : {profile.link.d2h, profile.link.h2d})
      OFFPROF_CHECK(direction.duration(kGiB) >= 0);
  });
}
