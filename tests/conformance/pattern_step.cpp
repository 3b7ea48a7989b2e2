#include "tests/conformance/pattern_step.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "tests/conformance/inverted.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 96 * kKiB;
/// Size of blocks from the caching allocator's large pool; all other blocks are from the small one.
constexpr Bytes kLargeBytes = kMiB + 4096;

template <typename T, std::size_t N>
const T& one_of(const std::array<T, N>& choices, std::size_t index) {
  return choices[index % N];
}

Policy draw_policy(std::mt19937_64& random) {
  static const std::array<Bytes, 3> kThresholds = {0, 2 * kKiB, 32 * kKiB};
  static const std::array<Bytes, 3> kPrefetch = {0, 32 * kKiB, 4 * kMiB};
  static const std::array<std::optional<std::int64_t>, 5> kStash = {std::nullopt, 0, 1, 2, 5};
  Policy policy = preset_policy(random() % 4 == 0 ? "trl" : "offload");
  policy.threshold_bytes = one_of(kThresholds, random());
  policy.stash_count = one_of(kStash, random());
  if (policy.scheduler == SchedulerKind::kTrl)
    policy.stash_count = policy.stash_count.value_or(3);
  else
    policy.prefetch_bytes = one_of(kPrefetch, random());
  return policy;
}

Policy draw_disk_policy(std::mt19937_64& random) {
  static const std::array<Bytes, 3> kBuffers = {0, 64 * kKiB, 4 * kMiB};
  Policy policy = draw_policy(random);
  policy.scheduler = SchedulerKind::kOffload;
  policy.threshold_bytes = std::nullopt;
  policy.prefetch_bytes = random() % 2 == 0 ? 0 : 200 * kKiB;
  policy.disk_buffer_bytes = one_of(kBuffers, random());
  policy.rules.emplace_back().placement.place = Place::kDisk;
  return policy;
}

}  // namespace

PatternStep::PatternStep(Device& device, std::uint64_t seed)
    : device_(device),
      random_(seed),
      policy_(device.disk() == nullptr ? draw_policy(random_) : draw_disk_policy(random_)),
      noise_(empty(kMostBytes)) {
  patterns_.resize(3 + draw(8));
  for (auto& pattern : patterns_) {
    const Bytes bytes = draw(8) == 0 ? kLargeBytes : 1 + static_cast<Bytes>(draw(kMostBytes));
    pattern.resize(static_cast<std::size_t>(bytes));
    std::generate(pattern.begin(), pattern.end(), [&] { return static_cast<std::uint8_t>(random_()); });
    sources_.push_back(empty(bytes));
    sources_.back().copy_(at::from_blob(pattern.data(), {bytes}, at::kByte));
    results_.push_back(empty(bytes));
  }
  order_.resize(sources_.size());
  std::iota(order_.rbegin(), order_.rend(), 0);
  if (draw(2) == 0) std::shuffle(order_.begin(), order_.end(), random_);
}

at::Tensor PatternStep::empty(Bytes bytes) const {
  return at::empty({bytes}, at::TensorOptions(device_.torch_device()).dtype(at::kByte));
}

// Allocates a temporary, writes to it, and frees it, as a model does.
void PatternStep::scribble() {
  for (std::size_t count = draw(3); count > 0; --count) {
    const at::Tensor temporary = empty(1 + static_cast<Bytes>(draw(kMostBytes)));
    temporary.copy_(noise_.narrow(0, 0, temporary.numel()));
  }
}

void PatternStep::forward(OffloadStep& step) {
  for (const at::Tensor& source : sources_) {
    const at::Tensor made = empty(source.numel());
    made.copy_(source);
    step.pack(made);
    scribble();
  }
}

void PatternStep::backward(OffloadStep& step) {
  for (const SavedId tensor : order_) {
    scribble();
    results_[static_cast<std::size_t>(tensor)].copy_(step.unpack(tensor));
    step.release(tensor);
    scribble();
  }
  step.backward_end();
}

int PatternStep::count_differences() {
  int different = 0;
  for (std::size_t i = 0; i < patterns_.size(); ++i) {
    std::vector<std::uint8_t> back(patterns_[i].size());
    at::from_blob(back.data(), results_[i].sizes(), at::kByte).copy_(results_[i]);
    if (back != patterns_[i]) ++different;
  }
  return different;
}

int PatternStep::run() {
  const bool is_recorded = draw(4) != 0;
  StepGuide guide = unrecorded_guide(policy_);
  if (is_recorded) guide.backward_order = order_;
  const auto step = std::make_shared<OffloadStep>(device_, policy_, std::move(guide),
                                                  std::make_shared<const Residents>(), nullptr);
  forward(*step);
  backward(*step);
  device_.synchronize();
  bytes_read_from_disk_ = step->disk().read_bytes();
  return count_differences();
}

}  // namespace offprof
