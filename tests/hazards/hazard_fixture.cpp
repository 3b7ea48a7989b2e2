#include "tests/hazards/hazard_fixture.h"

#include <cstring>

#include "tests/conformance/disk_under_test.h"
#include "tests/conformance/inverted.h"
#include "tests/support/test_extent.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

bool bitwise_equal(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

Policy policy_of(const std::string& preset, Bytes threshold, std::optional<std::int64_t> stash,
                 Bytes prefetch = 0) {
  Policy policy = preset_policy(preset);
  policy.threshold_bytes = threshold;
  policy.stash_count = stash;
  policy.prefetch_bytes = prefetch;
  return policy;
}

Policy ruled(const std::string& placement, std::optional<std::int64_t> stash, Bytes prefetch) {
  Policy policy = policy_of("offload", 0, stash, prefetch);
  policy.threshold_bytes = std::nullopt;
  policy.rules.emplace_back().placement = parse_placement(placement);
  return policy;
}

}  // namespace

void HazardTest::open(const std::string& device) {
  try {
    opened_ = open_device_under_test(device);
  } catch (const Error& error) {
    if (device != "cuda" || error.kind() != ErrorKind::kEnvironment) throw;
    GTEST_SKIP() << error.what();
  }
  give_disk(*opened_);
  device_ = std::make_unique<CountingDevice>(*opened_);
  static const bool installed = (install_autograd_engine(), true);
  ASSERT_TRUE(installed);
}

void HazardTest::TearDown() {
  if (!device_) return;
  device_->synchronize();
  EXPECT_THAT(hazards_seen(), testing::IsEmpty());
  device_->release_cache();
}

std::vector<at::Tensor> HazardTest::gradients(const Run& run, const std::optional<Policy>& policy) {
  at::manual_seed(kSeed);
  Graph graph(device_->torch_device());
  if (policy) {
    run_step(*policy, [&] { run(graph); });
  } else {
    run(graph);
  }
  return {graph.x.grad(), graph.w.grad()};
}

std::shared_ptr<OffloadStep> HazardTest::run_step(const Policy& policy, const std::function<void()>& work,
                                                  const Residents& residents) {
  auto step = std::make_shared<OffloadStep>(*device_, policy, unrecorded_guide(policy),
                                            std::make_shared<const Residents>(residents), nullptr);
  const CurrentStep current(step);
  work();
  step->backward_end();
  return step;
}

std::vector<Policy> HazardTest::policies_here() const {
  const std::vector<Policy> all = hazard_policies();
  if (has_full_extent()) return all;
  std::vector<Policy> some;
  for (std::size_t i = device_->torch_device().is_cpu() ? 0 : 1; i < all.size(); i += 2)
    some.push_back(all[i]);
  return some;
}

void HazardTest::expect_equal(const std::vector<at::Tensor>& actual,
                              const std::vector<at::Tensor>& expected) const {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(actual[i].defined(), expected[i].defined()) << "leaf " << i;
    if (!expected[i].defined() || !has_values()) continue;
    EXPECT_TRUE(bitwise_equal(actual[i], expected[i])) << "leaf " << i;
  }
}

void HazardTest::expect_nothing_left(const std::function<void()>& work) {
  work();
  const Leftovers once = leftovers();
  work();
  EXPECT_EQ(left_since(once), "");
  EXPECT_EQ(once.host_bytes, 0);
  EXPECT_EQ(once.disk_bytes, 0);
}

std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    const std::string what = error.what();
    return what.substr(0, what.find("\nException raised from"));
  }
  return {};
}

std::vector<Policy> hazard_policies() {
  Policy small_stash = policy_of("offload", 0, std::nullopt), small_host = policy_of("offload", 0, 1);
  small_stash.stash_bytes = 800;
  small_host.host_memory_bytes = 900;
  Policy one_stream = policy_of("offload", 0, 1, 800), planned = policy_of("offload", 0, 2, 400);
  one_stream.copy_streams = 1;
  planned.tensors = {0, 2, 3, 5, 8, 13, 21};
  Policy full_disk = ruled("disk", 0, 0), small_buffer = ruled("disk", 2, 1000);
  full_disk.disk_memory_bytes = 900;
  full_disk.host_memory_bytes = 900;
  small_buffer.disk_buffer_bytes = 800;
  return {policy_of("offload", 0, std::nullopt),
          policy_of("offload", 200, 2),
          small_stash,
          policy_of("offload", 0, 0, 1000),
          policy_of("offload", 0, 3, 1 << 20),
          small_host,
          one_stream,
          planned,
          ruled("host", 1, 0),
          ruled("inverted", 0, 0),
          ruled("inverted+host", 0, 0),
          ruled("inverted+host", 2, 1000),
          ruled("disk", 0, 0),
          ruled("disk", 1, 1 << 20),
          ruled("inverted+disk", 1, 1000),
          full_disk,
          small_buffer,
          policy_of("trl", 0, 0),
          policy_of("trl", 0, 3),
          policy_of("trl", 200, 5)};
}

}  // namespace offprof
