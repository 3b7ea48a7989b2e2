// Tests of LibTorch's own CUDA code over the stand-in libraries.
#include <ATen/ATen.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/stand_in.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

namespace allocator = c10::cuda::CUDACachingAllocator;

at::TensorOptions on_cuda() {
  return at::TensorOptions(at::kCUDA).dtype(at::kFloat);
}

Bytes now(const c10::CachingAllocator::StatArray& stat) {
  return stat[0].current;
}

// Memory left by one test would count in the next one.
class VirtualTorch : public testing::Test {
 protected:
  void SetUp() override {
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    options.log = [](const std::string& function) { std::cerr << "nobody has written " << function << '\n'; };
    offprof_virtual_gpu()->configure(std::move(options));
    at::globalContext().lazyInitDevice(at::kCUDA);
    allocator::emptyCache();
  }

  allocator::DeviceStats stats() { return allocator::getDeviceStats(0); }
};

TEST_F(VirtualTorch, FindsOneDeviceOfTheProfile) {
  EXPECT_EQ(c10::cuda::device_count(), 1);
}

TEST_F(VirtualTorch, CountsAllocatedAndReservedBytes) {
  const Bytes allocated = now(stats().allocated_bytes), reserved = now(stats().reserved_bytes);
  const at::Tensor small = at::empty({100}, on_cuda());
  const at::Tensor large = at::empty({3 * kMiB / 4}, on_cuda());
  EXPECT_EQ(now(stats().allocated_bytes) - allocated, 512 + 3 * kMiB);
  EXPECT_EQ(now(stats().reserved_bytes) - reserved, 2 * kMiB + 20 * kMiB);
  EXPECT_EQ(offprof_virtual_gpu()->used_bytes(), now(stats().reserved_bytes));
}

TEST_F(VirtualTorch, RunsALayerOfEachKindForwardAndBackward) {
  const at::Tensor image = at::randn({2, 3, 16, 16}, on_cuda()).requires_grad_();
  const at::Tensor kernel = at::randn({4, 3, 3, 3}, on_cuda()).requires_grad_();
  const at::Tensor weight = at::randn({16, 16}, on_cuda()).requires_grad_();
  const at::Tensor convolved = at::conv2d(image, kernel, {}, 1, 1);
  const at::Tensor product = at::matmul(at::layer_norm(convolved, {16}), weight);
  const at::Tensor attended = at::scaled_dot_product_attention(product, product, product);
  attended.sum().backward();
  EXPECT_EQ(image.grad().sizes(), image.sizes());
  EXPECT_EQ(kernel.grad().sizes(), kernel.sizes());
  EXPECT_EQ(weight.grad().sizes(), weight.sizes());
  EXPECT_GT(offprof_virtual_gpu()->launches(), 10);
}

TEST_F(VirtualTorch, RunsOutOfMemoryAtTheLimitAndContinues) {
  offprof_virtual_gpu()->set_memory_limit(offprof_virtual_gpu()->used_bytes() + 64 * kMiB);
  {
    const at::Tensor first = at::empty({40 * kMiB}, on_cuda().dtype(at::kByte));
    EXPECT_THROW(at::empty({40 * kMiB}, on_cuda().dtype(at::kByte)), c10::OutOfMemoryError);
  }
  EXPECT_NO_THROW(at::empty({64 * kMiB}, on_cuda().dtype(at::kByte)));
}

TEST_F(VirtualTorch, GrowsAnExpandableSegment) {
  allocator::setAllocatorSettings("expandable_segments:True");
  const Bytes before = offprof_virtual_gpu()->used_bytes();
  {
    const at::Tensor first = at::empty({30 * kMiB}, on_cuda().dtype(at::kByte));
    const at::Tensor second = at::empty({30 * kMiB}, on_cuda().dtype(at::kByte));
    EXPECT_EQ(second.data_ptr<std::uint8_t>() - first.data_ptr<std::uint8_t>(), 30 * kMiB);
    EXPECT_EQ(offprof_virtual_gpu()->used_bytes() - before, 60 * kMiB);
  }
  allocator::emptyCache();
  EXPECT_EQ(offprof_virtual_gpu()->used_bytes(), before);
  allocator::setAllocatorSettings("expandable_segments:False");
}

TEST_F(VirtualTorch, TrainsARecurrentLayer) {
  constexpr std::int64_t kHidden = 16;
  const at::Tensor input = at::randn({5, 2, 8}, on_cuda()).requires_grad_();
  const std::vector<at::Tensor> state = {at::zeros({1, 2, kHidden}, on_cuda()),
                                         at::zeros({1, 2, kHidden}, on_cuda())};
  const std::vector<at::Tensor> weights = {at::randn({4 * kHidden, 8}, on_cuda()).requires_grad_(),
                                           at::randn({4 * kHidden, kHidden}, on_cuda()).requires_grad_()};
  const auto [output, hidden, cell] =
      at::lstm(input, state, weights, /*has_biases=*/false, 1, 0, true, false, false);
  output.sum().backward();
  EXPECT_EQ(input.grad().sizes(), input.sizes());
  EXPECT_EQ(weights[1].grad().sizes(), weights[1].sizes());
}

TEST_F(VirtualTorch, CopiesBytesInFunctionalMode) {
  VirtualGpuOptions options;
  options.profile = load_profile("h200");
  options.functional_mode = true;
  options.seed = 3;
  offprof_virtual_gpu()->configure(std::move(options));
  const at::Tensor numbers = at::arange(1 << 16);
  EXPECT_TRUE(at::equal(numbers.to(at::kCUDA).clone().to(at::kCPU), numbers));
}

TEST_F(VirtualTorch, ReadsZerosWithoutFunctionalMode) {
  EXPECT_EQ(at::ones({1}, on_cuda()).item<float>(), 0);
}

}  // namespace
}  // namespace offprof
