#include "engine/slices/microbatches.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <fmt/format.h>

#include <mutex>
#include <optional>

#include "traces/base/error.h"

namespace offprof {
namespace {

std::optional<std::int64_t> batch_of(const std::vector<c10::IValue>& inputs) {
  for (const c10::IValue& input : inputs)
    if (input.isTensor() && input.toTensor().dim() > 0) return input.toTensor().size(0);
  return std::nullopt;
}

c10::IValue cut(const c10::IValue& input, std::int64_t batch, std::int64_t begin, std::int64_t length) {
  const bool is_of_batch =
      input.isTensor() && input.toTensor().dim() > 0 && input.toTensor().size(0) == batch;
  return is_of_batch ? input.toTensor().narrow(0, begin, length) : input;
}

std::uint64_t next_seed() {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

}  // namespace

std::vector<std::vector<c10::IValue>> cut_into_microbatches(const std::vector<c10::IValue>& inputs,
                                                            std::int64_t count) {
  if (count == 1) return {inputs};
  const std::optional<std::int64_t> batch = batch_of(inputs);
  if (!batch || *batch % count != 0 || *batch == 0)
    throw input_error(
        batch ? fmt::format(
                    "{} micro-batches do not evenly divide the batch of {}, the first dimension of the first "
                    "input",
                    count, *batch)
              : fmt::format("no input has a dimension that could be cut into {} micro-batches", count),
        "give --microbatches a divisor of the batch size, or other inputs with --input");
  const std::int64_t length = *batch / count;
  std::vector<std::vector<c10::IValue>> microbatches(count);
  for (std::int64_t i = 0; i < count; ++i)
    for (const c10::IValue& input : inputs) microbatches[i].push_back(cut(input, *batch, i * length, length));
  return microbatches;
}

MicrobatchRandom::MicrobatchRandom(std::int64_t count, c10::Device device) : device_(device) {
  if (count == 1) return;
  std::vector<std::uint64_t> seeds;
  for (std::int64_t i = 0; i < count; ++i) seeds.push_back(next_seed());
  const RngState now(device_);
  for (const std::uint64_t seed : seeds) {
    at::manual_seed(seed);
    streams_.emplace_back(device_);
  }
  now.restore();
}

MicrobatchRandom::Turn::Turn(MicrobatchRandom& random, std::size_t microbatch) {
  if (random.streams_.empty()) return;
  stream_ = &random.streams_.at(microbatch);
  before_.emplace(random.device_);
  stream_->restore();
}

MicrobatchRandom::Turn::~Turn() {
  if (stream_ == nullptr) return;
  *stream_ = RngState(before_->device());
  before_->restore();
}

}  // namespace offprof
