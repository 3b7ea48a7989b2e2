#include "engine/devices/virtual_gpu/model/gpu_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Times that a GPU would show whose memory moves `bandwidth` bytes a second and whose tensor cores do
/// `flops` operations a second.
GpuMeasurements measured(const DeviceProfile& properties, double bandwidth, double flops) {
  constexpr double kBytes = 3.0 * 2 * kAddElements;
  constexpr double kOperations = 2.0 * kProductWidth * kProductWidth * kProductWidth;
  GpuMeasurements result{.properties = properties};
  result.small_kernel_ns = 1800;
  result.launch_ns = 4100;
  result.add_ns = 1800 + static_cast<Nanoseconds>(1e9 * kBytes / bandwidth);
  result.product_ns = 1800 + static_cast<Nanoseconds>(1e9 * kOperations / flops);
  result.sustained_product_ns = result.product_ns;
  result.attention_ns = 4'000'000;
  result.broadcast_ns = 2'000'000;
  result.link = {{24e9, 3000}, {25e9, 2500}};
  return result;
}

TEST(FitProfile, SharesArePartsOfThePeaks) {
  const DeviceProfile a100 = load_profile("a100-80gb");
  const DeviceProfile fitted = fit_profile(a100, measured(a100, 1.5e12, 240e12), "mine");
  EXPECT_EQ(fitted.name, "mine");
  EXPECT_NEAR(fitted.memory_efficiency, 1.5e12 / a100.memory_bytes_per_second, 1e-4);
  // 8192 x 8192 results in tiles of 128 x 256 fill 2048 / (19 x 108) of the waves.
  EXPECT_NEAR(fitted.compute_efficiency, 240.0 / 312 / (2048.0 / (19 * 108)), 1e-3);
  EXPECT_EQ(fitted.kernel_ns, 1800);
  EXPECT_EQ(fitted.launch_ns, 4100);
  EXPECT_EQ(fitted.link.h2d.latency_ns, 2500);
  EXPECT_EQ(fitted.flops_per_second, a100.flops_per_second);
}

TEST(FitProfile, TheClockUnderLoadIsThatOfALongRunOfProducts) {
  const DeviceProfile a100 = load_profile("a100-80gb");
  GpuMeasurements throttled = measured(a100, 1.5e12, 240e12);
  EXPECT_NEAR(fit_profile(a100, throttled, "mine").sustained_clock, 1, 1e-9);
  throttled.sustained_product_ns = 1800 + (throttled.product_ns - 1800) * 10 / 9;
  const DeviceProfile fitted = fit_profile(a100, throttled, "mine");
  EXPECT_NEAR(fitted.sustained_clock, 0.9, 1e-4);
  EXPECT_NEAR(fitted.compute_efficiency,
              fit_profile(a100, measured(a100, 1.5e12, 240e12), "").compute_efficiency, 1e-9);
}

TEST(FitProfile, AGpuThatReachesMoreThanThePeakHasTheShareOne) {
  const DeviceProfile a100 = load_profile("a100-80gb");
  EXPECT_NEAR(fit_profile(a100, measured(a100, 9e12, 240e12), "mine").memory_efficiency, 1, 1e-9);
}

TEST(FitProfile, PeaksFollowMultiprocessorsAndClocks) {
  const DeviceProfile a100 = load_profile("a100-80gb");
  DeviceProfile half = a100;
  half.multiprocessors /= 2;
  half.memory_bus_bits /= 2;
  const DeviceProfile fitted = fit_profile(a100, measured(half, 0.75e12, 120e12), "half");
  EXPECT_DOUBLE_EQ(fitted.flops_per_second.at("bfloat16"), a100.flops_per_second.at("bfloat16") / 2);
  EXPECT_DOUBLE_EQ(fitted.memory_bytes_per_second, a100.memory_bytes_per_second / 2);
}

TEST(FitProfile, TheFileReadsBackAsTheProfile) {
  const DeviceProfile a100 = load_profile("a100-80gb");
  GpuMeasurements throttled = measured(a100, 1.5e12, 240e12);
  throttled.sustained_product_ns = throttled.product_ns * 10 / 9;
  const DeviceProfile fitted = fit_profile(a100, throttled, "mine");
  const std::string text = format_profile(fitted, {{"memory", "driver"},
                                                   {"multiprocessors", "driver"},
                                                   {"flops_per_second", "data sheet"},
                                                   {"efficiency", "measured"},
                                                   {"kernels", "measured"},
                                                   {"host", "assumed"},
                                                   {"link", "measured"}});
  const DeviceProfile read = parse_profile(text, "mine.json");
  EXPECT_EQ(read.device_name, fitted.device_name);
  EXPECT_EQ(read.l2_cache_bytes, fitted.l2_cache_bytes);
  EXPECT_NEAR(read.compute_efficiency, fitted.compute_efficiency, 1e-4);
  EXPECT_NEAR(read.sustained_clock, fitted.sustained_clock, 1e-4);
  EXPECT_LT(read.sustained_clock, 0.95);
  EXPECT_NEAR(read.elements_per_cycle, fitted.elements_per_cycle, 1e-4);
  Link link = fitted.link;
  link.d2h.compute_ns_per_byte = read.link.d2h.compute_ns_per_byte;  // follow from the memory's figures
  link.h2d.compute_ns_per_byte = read.link.h2d.compute_ns_per_byte;
  EXPECT_EQ(read.link, link);
  EXPECT_EQ(read.context_bytes, a100.context_bytes);
  for (const HostWork work : {HostWork::kOperator, HostWork::kPythonCall, HostWork::kRecording,
                              HostWork::kNode, HostWork::kLaunch, HostWork::kRandomNumber}) {
    EXPECT_EQ(read.host.of(work), a100.host.of(work));
    EXPECT_GT(read.host.of(work), 0);
  }
}

TEST(ProfileLike, IsOfTheSameNameOrElseOfTheSameCapability) {
  EXPECT_EQ(profile_like(load_profile("rtx4090")).name, "rtx4090");
  DeviceProfile other = load_profile("h100-80gb");
  other.device_name = "NVIDIA GH200";
  const DeviceProfile like = profile_like(other);
  EXPECT_EQ(like.compute_capability_major, 9);
  other.compute_capability_major = 7;
  EXPECT_THROW(profile_like(other), Error);
}

}  // namespace
}  // namespace offprof
