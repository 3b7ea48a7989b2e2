// Measures the cost of the disk tier compared with the disk itself. The same bytes are copied by a plain loop
// of pwrite and pread with the same direct I/O, and through the tier. Both alternate in one run, since a
// disk's speed changes from one minute to the next.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "engine/copies/aligned_buffer.h"
#include "engine/storage/disk_queue.h"
#include "engine/storage/disk_tier.h"
#include "engine/storage/scratch_file.h"
#include "traces/base/check.h"
#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

/// The bytes of one step, in tensors of a size that transformers save.
constexpr Bytes kTensorBytes = 8 * kMiB;
constexpr int kTensors = 32;
constexpr double kNanosecondsPerSecond = 1e9;

std::string folder() {
  return std::filesystem::temp_directory_path().string();
}

std::vector<AlignedBuffer> make_tensors() {
  std::vector<AlignedBuffer> tensors;
  for (int i = 0; i < kTensors; ++i) {
    tensors.push_back(make_aligned_buffer(kTensorBytes));
    std::memset(tensors.back().get(), i + 1, static_cast<std::size_t>(kTensorBytes));
  }
  return tensors;
}

/// Returns the duration of `work`.
template <typename Work>
Nanoseconds time_of(Work work) {
  const Nanoseconds begin = steady_now();
  work();
  return steady_now() - begin;
}

struct Times {
  Nanoseconds write_ns = 0, read_ns = 0;
};

/// Copies with one call per MiB, one after the other, as cp(1) and dd(1) do.
class PlainCopy {
 public:
  explicit PlainCopy(DirectIo direct_io) : file_(folder(), direct_io, std::make_shared<FileCalls>()) {
    OFFPROF_CHECK(file_.grow(kTensors * kTensorBytes).empty());
  }

  Times copy(const std::vector<AlignedBuffer>& tensors) const {
    return {time_of([&] { each(tensors, pwrite); }), time_of([&] { each(tensors, pread); })};
  }

 private:
  template <typename Call>
  void each(const std::vector<AlignedBuffer>& tensors, Call call) const {
    for (Bytes done = 0; done < kTensors * kTensorBytes; done += kMiB) {
      std::byte* memory = tensors[static_cast<std::size_t>(done / kTensorBytes)].get() + done % kTensorBytes;
      OFFPROF_CHECK(call(file_.fd(), memory, kMiB, done) == kMiB);
    }
  }

  ScratchFile file_;
};

class TierCopy {
 public:
  explicit TierCopy(const DiskTierOptions& options) : tier_(folder(), options) {
    for (int i = 0; i < kTensors; ++i) extents_.push_back(tier_.reserve(kTensorBytes).value());
  }

  Times copy(const std::vector<AlignedBuffer>& tensors) {
    const Nanoseconds write_ns = time_of([&] {
      for (std::size_t i = 0; i < kTensors; ++i) tier_.write(extents_[i], tensors[i].get(), kTensorBytes);
      tier_.take_records();
    });
    const Nanoseconds read_ns = time_of([&] {
      for (std::size_t i = 0; i < kTensors; ++i) tier_.read(extents_[i], tensors[i].get(), kTensorBytes);
      tier_.take_records();
    });
    return {write_ns, read_ns};
  }

 private:
  DiskTier tier_;
  std::vector<Extent> extents_;
};

/// The time is the tier's. `ratio` is its throughput divided by the plain copy's, writes and reads together.
void disk_tier(benchmark::State& state, DiskBackend backend, DirectIo direct_io, bool checksums) {
  std::string why_not;
  if (backend == DiskBackend::kIoUring && make_io_uring_queue(1, why_not) == nullptr)
    return state.SkipWithError(("no io_uring here: " + why_not).c_str());
  DiskTierOptions options;
  options.backend = backend;
  options.direct_io = direct_io;
  options.checksums = checksums;
  const auto tensors = make_tensors();
  const PlainCopy plain(direct_io);
  TierCopy tier(options);
  plain.copy(tensors);  // a disk's first write to a location takes longer
  tier.copy(tensors);
  Times plain_sum, tier_sum;
  for (auto _ : state) {
    const Times of_plain = plain.copy(tensors), of_tier = tier.copy(tensors);
    plain_sum = {plain_sum.write_ns + of_plain.write_ns, plain_sum.read_ns + of_plain.read_ns};
    tier_sum = {tier_sum.write_ns + of_tier.write_ns, tier_sum.read_ns + of_tier.read_ns};
    state.SetIterationTime(static_cast<double>(of_tier.write_ns + of_tier.read_ns) / kNanosecondsPerSecond);
  }
  const auto ratio = [](Nanoseconds of_plain, Nanoseconds of_tier) {
    return static_cast<double>(of_plain) / static_cast<double>(of_tier);
  };
  state.SetBytesProcessed(state.iterations() * 2 * kTensors * kTensorBytes);
  state.counters["ratio"] =
      ratio(plain_sum.write_ns + plain_sum.read_ns, tier_sum.write_ns + tier_sum.read_ns);
  state.counters["write_ratio"] = ratio(plain_sum.write_ns, tier_sum.write_ns);
  state.counters["read_ratio"] = ratio(plain_sum.read_ns, tier_sum.read_ns);
}

constexpr auto kUring = DiskBackend::kIoUring, kPool = DiskBackend::kThreads;
constexpr auto kDirect = DirectIo::kAuto, kBuffered = DirectIo::kOff;

BENCHMARK_CAPTURE(disk_tier, io_uring_direct, kUring, kDirect, false)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(disk_tier, io_uring_sums, kUring, kDirect, true)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(disk_tier, io_uring_buffered, kUring, kBuffered, false)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(disk_tier, threads_direct, kPool, kDirect, false)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(disk_tier, threads_sums, kPool, kDirect, true)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(disk_tier, threads_buffered, kPool, kBuffered, false)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace offprof

BENCHMARK_MAIN();
