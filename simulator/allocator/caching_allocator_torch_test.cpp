// Compares the model with PyTorch's own allocator over the virtual GPU. Both get the same requests, and must
// then have the same blocks in the same segments. Each process has one set of settings, in
// PYTORCH_CUDA_ALLOC_CONF.

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "simulator/allocator/allocator_layout.h"
#include "simulator/allocator/caching_allocator.h"
#include "traces/format/allocator_state_io.h"

extern "C" offprof::Device* offprof_make_cuda_device(int index,
                                                     bool is_virtual);  // engine/devices/cuda_plugin.h

namespace offprof {
namespace {

namespace torch_cuda = c10::cuda::CUDACachingAllocator;

constexpr int kOperations = 100'000;
constexpr int kStreams = 4;

std::string settings_in_environment() {
  const char* text = std::getenv("PYTORCH_CUDA_ALLOC_CONF");
  return text == nullptr ? "" : text;
}

// Draws sizes from a byte to half a gibibyte, uniform on a logarithmic scale. Every second one is near a size
// at which the allocator's rules change.
class Sizes {
 public:
  Bytes draw(std::mt19937_64& random) const {
    if (random() % 2 == 0) return std::max<Bytes>(1, static_cast<Bytes>(std::exp2(log_size_(random))));
    static constexpr Bytes kThresholds[] = {512,       kMiB,      2 * kMiB,   10 * kMiB,
                                            20 * kMiB, 64 * kMiB, 128 * kMiB, 300 * kMiB};
    const Bytes near = kThresholds[random() % std::size(kThresholds)];
    switch (random() % 4) {
      case 0:
        return near;
      case 1:
        return near - 1 - static_cast<Bytes>(random() % 511);
      case 2:
        return near + 1 + static_cast<Bytes>(random() % 2048);
      default:
        return near + static_cast<Bytes>(random() % near) / 4 - near / 8;
    }
  }

 private:
  mutable std::uniform_real_distribution<double> log_size_{0, 29};
};

/// Returns the device's total memory, which determines expandable segments and memory fractions.
Bytes total_device_memory() {
  std::size_t free_bytes = 0, total_bytes = 0;
  EXPECT_EQ(cudaMemGetInfo(&free_bytes, &total_bytes), cudaSuccess);
  return static_cast<Bytes>(total_bytes);
}

// Converts PyTorch's snapshot to the model's types; addresses are PyTorch's.
std::vector<CachedSegment> snapshot(const std::vector<c10::cuda::CUDAStream>& streams) {
  std::vector<CachedSegment> found;
  for (const auto& from : torch_cuda::snapshot({0, 0}, false).segments) {
    CachedSegment segment;
    segment.address = static_cast<Bytes>(from.address);
    const auto stream = std::find_if(streams.begin(), streams.end(),
                                     [&](const auto& known) { return known.stream() == from.stream; });
    segment.stream = static_cast<std::int32_t>(stream - streams.begin());
    segment.is_large = from.is_large;
    segment.is_expandable = from.is_expandable;
    for (const auto& block : from.blocks) {
      CachedBlock entry;
      entry.bytes = static_cast<Bytes>(block.size);
      entry.requested_bytes = block.active ? static_cast<Bytes>(block.requested_size) : 0;
      entry.allocated = block.allocated;
      entry.active = block.active;
      segment.blocks.push_back(entry);
    }
    found.push_back(std::move(segment));
  }
  return found;
}

// Removes the differences that the two must have: only the model knows storages, and addresses count from the
// beginning of the address range that a segment lies in.
void make_comparable(std::vector<CachedSegment>& segments, const std::vector<CachedSegment>& model) {
  Bytes begin = 0;
  for (std::size_t i = 0; i < segments.size() && i < model.size(); ++i) {
    const Bytes range = model[i].address - model[i].range_offset;
    const bool is_same_range = i > 0 && range == model[i - 1].address - model[i - 1].range_offset;
    if (!is_same_range) begin = segments[i].address;
    segments[i].range_offset = segments[i].address - begin;
    segments[i].address = 0;
    for (CachedBlock& block : segments[i].blocks) block.storage = -1;
  }
}

AllocatorCounters torch_counters() {
  const auto stats = torch_cuda::getDeviceStats(0);
  const auto sum = [](const auto& stat) { return PeakedBytes{stat[0].current, stat[0].peak}; };
  AllocatorCounters counters;
  counters.requested = sum(stats.requested_bytes);
  counters.allocated = sum(stats.allocated_bytes);
  counters.active = sum(stats.active_bytes);
  counters.reserved = sum(stats.reserved_bytes);
  counters.segments = stats.segment[0].current;
  counters.retries = stats.num_alloc_retries;
  return counters;
}

std::string describe(const AllocatorCounters& counters) {
  std::string text;
  for (const PeakedBytes& sum :
       {counters.requested, counters.allocated, counters.active, counters.reserved}) {
    text += std::to_string(sum.current) + "/" + std::to_string(sum.peak) + " ";
  }
  return text + std::to_string(counters.segments) + " segments, " + std::to_string(counters.retries) +
         " retries";
}

AllocatorState written_and_read(const AllocatorState& state) {
  std::string text;
  append_allocator_state(text, state);
  return allocator_state_from_json(JsonValue(nlohmann::json::parse(text), "state"));
}

// Counts the pieces of address ranges that lie behind holes.
int count_holes(const AllocatorState& state) {
  int holes = 0;
  for (std::size_t i = 1; i < state.segments.size(); ++i) {
    const AllocatorSegment& segment = state.segments[i];
    holes += segment.is_expandable && segment.range == state.segments[i - 1].range;
  }
  return holes;
}

// Drives both allocators with one sequence of random operations. A block's storage is the device's number of
// its allocation.
class Twins {
 public:
  Twins(Device& device, std::uint64_t seed, std::optional<Bytes> capacity)
      : device_(device),
        random_(seed),
        limits_{capacity, total_device_memory()},
        model_(parse_allocator_settings(settings_in_environment()), limits_) {
    offprof_virtual_gpu()->set_memory_limit(capacity.value_or(kUnlimitedBytes));
    streams_.push_back(c10::cuda::getDefaultCUDAStream(0));
    while (streams_.size() < kStreams) streams_.push_back(c10::cuda::getStreamFromPool(false, 0));
    torch_cuda::emptyCache();
    torch_cuda::resetPeakStats(0);
    torch_cuda::resetAccumulatedStats(0);
  }
  ~Twins() {
    blocks_.clear();
    torch_cuda::emptyCache();
  }

  void step() {
    const std::uint64_t draw = random_() % 10'000;
    if (draw < 3) {
      torch_cuda::emptyCache();
      model_.empty_cache();
    } else if (draw < 300 && !blocks_.empty()) {
      if (records_streams_) record_stream();
    } else if (!blocks_.empty() && draw < 300 + 97 * free_percent()) {
      free();
    } else {
      allocate();
    }
  }

  void expect_same_counters() { EXPECT_EQ(describe(torch_counters()), describe(model_.counters())); }

  void expect_same_blocks() {
    const std::vector<CachedSegment> model = model_.segments();
    std::vector<CachedSegment> expected = snapshot(streams_), found = model;
    make_comparable(expected, model);
    make_comparable(found, model);
    EXPECT_EQ(layout(expected), layout(found));
    EXPECT_TRUE(expected == found) << "requested bytes differ";
  }

  // Rebuilds the model from the state that a trace keeps of it. Peaks begin at the current values.
  void continue_from_state() {
    allocate();  // both check their events, so that no block waits
    model_ = CachingAllocator(model_.state(), limits_);
    const auto blocks = model_.blocks_by_storage();
    for (Twin& twin : blocks_) twin.model = blocks.at(twin.storage);
    torch_cuda::resetPeakStats(0);
    torch_cuda::resetAccumulatedStats(0);
  }

  // Rebuilds the model from the device's version of PyTorch's snapshot, by way of a trace. All cached memory
  // has been freed, as before measured steps.
  void continue_from_snapshot() {
    device_.release_cache();
    model_.empty_cache();
    AllocatorState state =
        *device_.allocator_state([](AllocationId id) { return static_cast<std::int32_t>(id); });
    number_streams_as_here(state);
    holes_ += count_holes(state);
    model_ = CachingAllocator(written_and_read(state), limits_);
    EXPECT_EQ(model_.state(), state);
    const auto blocks = model_.blocks_by_storage();
    for (Twin& twin : blocks_) twin.model = blocks.at(twin.storage);
    torch_cuda::resetPeakStats(0);
    torch_cuda::resetAccumulatedStats(0);
  }

  // No state contains the other streams that have used a block; the device ensures that no block has any.
  void record_no_streams() { records_streams_ = false; }

  int holes() const { return holes_; }
  int times_out_of_memory() const { return times_out_of_memory_; }

 private:
  struct Twin {
    c10::DataPtr torch;
    CachingAllocator::Handle model = 0;
    std::int32_t storage = 0;
  };

  // The target number of live blocks changes, so that the cache fills and drains.
  std::uint64_t free_percent() {
    if (random_() % 2000 == 0) target_ = 20 + random_() % 400;
    return blocks_.size() > target_ ? 60 : 45;
  }

  // Replaces the device's numbers of streams by their indices in streams_.
  void number_streams_as_here(AllocatorState& state) const {
    const auto segments = torch_cuda::snapshot({0, 0}, /*include_traces=*/false).segments;
    ASSERT_EQ(segments.size(), state.segments.size());
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const auto stream = std::find_if(streams_.begin(), streams_.end(), [&](const auto& known) {
        return known.stream() == segments[i].stream;
      });
      state.segments[i].stream = static_cast<std::int32_t>(stream - streams_.begin());
    }
  }

  void allocate() {
    const Bytes bytes = sizes_.draw(random_);
    const std::size_t stream = random_() % 2 == 0 ? 0 : random_() % kStreams;
    c10::cuda::setCurrentCUDAStream(streams_[stream]);
    bool torch_fails = false, model_fails = false;
    Twin twin;
    twin.storage = static_cast<std::int32_t>(device_.next_allocation());
    try {
      twin.torch = torch_cuda::get()->allocate(static_cast<std::size_t>(bytes));
    } catch (const c10::OutOfMemoryError&) {
      torch_fails = true;
    }
    try {
      twin.model = model_.allocate(bytes, static_cast<std::int32_t>(stream), twin.storage);
    } catch (const AllocatorOutOfMemory&) {
      model_fails = true;
    }
    ASSERT_EQ(torch_fails, model_fails) << "for " << bytes << " bytes";
    times_out_of_memory_ += torch_fails;
    if (!torch_fails) blocks_.push_back(std::move(twin));
  }

  void free() {
    std::swap(blocks_[random_() % blocks_.size()], blocks_.back());
    model_.free(blocks_.back().model);
    blocks_.pop_back();
  }

  void record_stream() {
    const Twin& twin = blocks_[random_() % blocks_.size()];
    const std::size_t stream = random_() % kStreams;
    torch_cuda::recordStream(twin.torch, streams_[stream]);
    model_.record_stream(twin.model, static_cast<std::int32_t>(stream));
  }

  Device& device_;
  std::mt19937_64 random_;
  Sizes sizes_;
  DeviceLimits limits_;
  CachingAllocator model_;
  std::vector<c10::cuda::CUDAStream> streams_;
  std::vector<Twin> blocks_;
  std::size_t target_ = 100;
  int times_out_of_memory_ = 0;
  int holes_ = 0;
  bool records_streams_ = true;
};

class CachingAllocatorBesidePyTorch : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    options.profile.memory_bytes = 8 * kGiB;  // so that memory fractions and address ranges are exhausted
    offprof_virtual_gpu()->configure(std::move(options));
    device_.reset(offprof_make_cuda_device(0, /*is_virtual=*/false));
    device_->set_capacity(device_->memory_bytes());  // this is no limit and must change nothing
  }
  static void TearDownTestSuite() { device_.reset(); }

  // Returns how often memory ran out.
  static int compare(std::uint64_t seed, std::optional<Bytes> capacity) {
    constexpr int kOperationsBetweenSnapshots = 50;
    SCOPED_TRACE("PYTORCH_CUDA_ALLOC_CONF='" + settings_in_environment() + "', seed " + std::to_string(seed));
    Twins twins(*device_, seed, capacity);
    for (int i = 0; i < kOperations && !HasFailure(); ++i) {
      SCOPED_TRACE("operation " + std::to_string(i));
      twins.step();
      twins.expect_same_counters();
      if (i % kOperationsBetweenSnapshots == 0) twins.expect_same_blocks();
    }
    twins.expect_same_blocks();
    return twins.times_out_of_memory();
  }

  static inline std::unique_ptr<Device> device_;
};

TEST_F(CachingAllocatorBesidePyTorch, HasTheSameBlocksIfMemoryIsPlentiful) {
  compare(1, std::nullopt);
}

TEST_F(CachingAllocatorBesidePyTorch, HasTheSameBlocksIfMemoryRunsOut) {
  EXPECT_GT(compare(2, 3 * kGiB), 0);
}

TEST_F(CachingAllocatorBesidePyTorch, GoesOnFromTheStateInATrace) {
  ASSERT_EQ(parse_allocator_settings(settings_in_environment()).garbage_collection_threshold, 0)
      << "no snapshot contains the age of cached blocks: exclude this case with such settings";
  constexpr int kOperationsBefore = 1000;
  Twins twins(*device_, 4, 4 * kGiB);
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    for (int j = 0; j < kOperationsBefore; ++j) twins.step();
    twins.continue_from_state();
    twins.expect_same_blocks();
    twins.expect_same_counters();
  }
}

TEST_F(CachingAllocatorBesidePyTorch, GoesOnFromASnapshotInATrace) {
  Twins twins(*device_, 5, 4 * kGiB);
  twins.record_no_streams();
  for (int i = 0; i < 100 && !HasFailure(); ++i) {
    SCOPED_TRACE("snapshot " + std::to_string(i));
    for (int j = 0; j < 200; ++j) twins.step();
    twins.continue_from_snapshot();
    for (int j = 0; j < 200; ++j) twins.step();
    twins.expect_same_blocks();
    twins.expect_same_counters();
  }
  const bool is_expandable = parse_allocator_settings(settings_in_environment()).expandable_segments;
  EXPECT_EQ(twins.holes() > 0, is_expandable);
}

TEST_F(CachingAllocatorBesidePyTorch, HasTheSameBlocksIfMemoryIsTight) {
  compare(3, 6 * kGiB);
}

TEST_F(CachingAllocatorBesidePyTorch, DeviceRestoresTheFractionInTheSettings) {
  const double before = torch_cuda::getMemoryFraction(0);
  device_->set_capacity(kGiB);
  EXPECT_EQ(torch_cuda::getMemoryFraction(0), 0.125);
  device_->set_capacity(8 * kGiB);
  EXPECT_EQ(torch_cuda::getMemoryFraction(0), before);
  device_->set_capacity(std::nullopt);
  EXPECT_EQ(torch_cuda::getMemoryFraction(0), before);
}

}  // namespace
}  // namespace offprof
