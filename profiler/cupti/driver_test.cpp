#include "profiler/cupti/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace offprof {
namespace {

using testing::HasSubstr;

int succeed(unsigned) {
  return 0;
}
int find_no_device(unsigned) {
  return 100;
}
int fail(unsigned) {
  return 803;
}
int say_13(int* version) {
  return *version = 13000, 0;
}
int say_12_8(int* version) {
  return *version = 12080, 0;
}
int count_one(int* count) {
  return *count = 1, 0;
}
int count_none(int* count) {
  return *count = 0, 0;
}

constexpr DriverFunctions kWorking{true, succeed, say_13, count_one};

std::string refusal_of(const DriverFunctions& driver) {
  const auto refusal = driver_refusal(driver);
  return refusal ? std::string(refusal->what()) + " | " + refusal->hint() : "";
}

TEST(DriverRefusal, IsEmptyIfThereIsAGpu) {
  EXPECT_EQ(refusal_of(kWorking), "");
}

TEST(DriverRefusal, ReportsAMissingDriver) {
  EXPECT_THAT(refusal_of({}), HasSubstr("there is no NVIDIA driver"));
}

TEST(DriverRefusal, ReportsADriverOlderThanCupti) {
  DriverFunctions driver = kWorking;
  driver.version = say_12_8;
  EXPECT_THAT(refusal_of(driver), HasSubstr("supports CUDA 12.8, but CUPTI needs CUDA 13"));
  EXPECT_THAT(refusal_of(driver), HasSubstr("580 or later"));
}

TEST(DriverRefusal, ReportsAMissingGpu) {
  DriverFunctions driver = kWorking;
  driver.start = find_no_device;
  EXPECT_THAT(refusal_of(driver), HasSubstr("finds no GPU"));
  driver = kWorking;
  driver.count_devices = count_none;
  EXPECT_THAT(refusal_of(driver), HasSubstr("finds no GPU"));
}

TEST(DriverRefusal, ReportsTheNumberOfAnotherError) {
  DriverFunctions driver = kWorking;
  driver.start = fail;
  EXPECT_THAT(refusal_of(driver), HasSubstr("error 803"));
}

}  // namespace
}  // namespace offprof
