#include "engine/devices/virtual_gpu/kernel_code/cubin.h"

#include <gmock/gmock.h>

#include "engine/devices/virtual_gpu/kernel_code/test_cubin.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

KernelParameters read(const std::string& image) {
  return kernel_parameters(std::as_bytes(std::span(image)));
}

/// A cubin with a kernel that takes a pointer and a number, and one that takes a number.
TestCubin two_kernels() {
  TestCubin cubin;
  cubin.add_kernel("add");
  cubin.add_parameter(1, 4, TestCubin::kPlain);  // ptxas lists the last one first
  cubin.add_parameter(0, 8, TestCubin::kGlobal);
  cubin.add_kernel("fill");
  cubin.add_parameter(0, 8, TestCubin::kPlain);
  return cubin;
}

const KernelParameter kPointer{8, true}, kInt{4, false}, kLong{8, false};

TEST(Cubin, ListsTheParametersOfEachKernelInTheirOrder) {
  EXPECT_THAT(read(two_kernels().image()),
              ElementsAre(Pair("add", ElementsAre(kPointer, kInt)), Pair("fill", ElementsAre(kLong))));
}

TEST(Cubin, ReadsAnImageOfUnknownSize) {
  const std::string image = two_kernels().image();
  EXPECT_EQ(kernel_parameters_at(image.data()), read(image));
}

TEST(Cubin, AnImageThatIsNoCubinHasNoKernels) {
  EXPECT_THAT(read(".version 8.4\n.target sm_90"), IsEmpty());
  EXPECT_THAT(kernel_parameters_at("no code"), IsEmpty());
  EXPECT_THAT(kernel_parameters_at(nullptr), IsEmpty());
}

TEST(Cubin, LeavesOutAKernelWhoseParametersAreIncomplete) {
  TestCubin cubin;
  cubin.add_kernel("add");
  cubin.add_parameter(1, 8, TestCubin::kGlobal);
  EXPECT_THAT(read(cubin.image()), IsEmpty());
}

TEST(Cubin, SurvivesAFileThatEndsAnywhere) {
  const std::string image = two_kernels().image();
  for (std::size_t bytes = 0; bytes < image.size(); ++bytes)
    EXPECT_LE(read(image.substr(0, bytes)).size(), 2U);
}

}  // namespace
}  // namespace offprof
