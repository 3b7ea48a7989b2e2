// Measures the cost of passing autograd's saved tensors through the engine if all of them are kept. The same
// graph runs alternately with and without the engine.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "engine/autograd/autograd_engine.h"
#include "engine/autograd/offload_step.h"
#include "engine/devices/host/host_device.h"
#include "traces/model/policy.h"

namespace offprof {
namespace {

constexpr int kNodes = 64;

/// Builds a chain of small products. Each node saves an activation and a leaf, and does hardly any other
/// work.
at::Tensor chain(const at::Tensor& leaf) {
  at::Tensor h = leaf.exp();
  for (int i = 0; i < kNodes; ++i) h = h * leaf;
  return h;
}

Nanoseconds median(std::vector<Nanoseconds> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

class Chain {
 public:
  explicit Chain(HostDevice& device) : device_(device) {}

  /// Runs forward and backward of the chain. With `policy` nullopt it is plain autograd.
  Nanoseconds run(const std::optional<Policy>& policy) {
    leaf_.mutable_grad() = at::Tensor();
    std::shared_ptr<OffloadStep> step;
    std::optional<CurrentStep> current;
    if (policy) {
      step = std::make_shared<OffloadStep>(device_, *policy, std::vector<SavedId>{}, residents_, nullptr);
      current.emplace(step);
    }
    const Nanoseconds begin = steady_now();
    chain(leaf_).backward(ones_);
    const Nanoseconds duration = steady_now() - begin;
    if (step) saved_tensors_ = count(step->ledger());
    return duration;
  }

  std::int64_t saved_tensors() const { return saved_tensors_; }

 private:
  static std::int64_t count(const Ledger& ledger) {
    std::int64_t tensors = 0;
    for (const auto& [place, entry] : ledger) tensors += entry.tensors;
    return tensors;
  }

  HostDevice& device_;
  std::shared_ptr<const Residents> residents_ = std::make_shared<const Residents>();
  at::Tensor leaf_ = at::rand({4}).set_requires_grad(true);
  at::Tensor ones_ = at::ones({4});
  std::int64_t saved_tensors_ = 0;
};

void saved_tensors(benchmark::State& state, HostDevice* device, const std::string& preset) {
  const Policy policy = preset_policy(preset);
  Chain chain(*device);
  std::vector<Nanoseconds> plain, with;
  for (auto _ : state) {
    plain.push_back(chain.run(std::nullopt));
    with.push_back(chain.run(policy));
    state.SetIterationTime(static_cast<double>(with.back()) * 1e-9);
  }
  const auto plain_ns = static_cast<double>(median(plain)), with_ns = static_cast<double>(median(with));
  state.counters["plain_us"] = plain_ns / 1000;
  state.counters["with_us"] = with_ns / 1000;
  state.counters["ratio"] = with_ns / plain_ns;
  state.counters["ns_per_saved_tensor"] = (with_ns - plain_ns) / static_cast<double>(chain.saved_tensors());
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  using namespace offprof;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  HostDevice device(CountedAllocator::install(), Link{});
  install_autograd_engine();
  for (const char* preset : {"keep", "offload"})
    benchmark::RegisterBenchmark((std::string("saved_tensor/") + preset).c_str(), saved_tensors, &device,
                                 preset)
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  benchmark::RunSpecifiedBenchmarks();
}
