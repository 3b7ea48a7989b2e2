#include "engine/devices/disk/tiered_device_disk.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

/// State of a transfer from the time when it is given to the tier.
struct HandedOver {
  std::atomic<bool> is_known = false;  ///< set after the other members
  DiskTier::Ticket ticket = 0;
  std::exception_ptr failure;  ///< set if the tier did not accept it
};

struct TierTransfer final : DiskTransfer {
  std::uint32_t number = 0;  ///< of a read, counted from 1 in the order of calls
  // Separate from `point`: a queued call may use it, but must not free objects of the device.
  std::shared_ptr<HandedOver> handed_over = std::make_shared<HandedOver>();
  std::unique_ptr<QueuePoint> point;  ///< point at which it is given to the tier; nullptr: already given
};

const TierTransfer& of_tier(const DeviceDisk::Transfer& transfer) {
  return static_cast<const TierTransfer&>(*transfer);
}

template <typename Begin>
std::function<void()> hand_over(const TierTransfer& transfer, Begin begin) {
  return [to = transfer.handed_over, begin = std::move(begin)] {
    try {
      to->ticket = begin();
    } catch (...) {
      to->failure = std::current_exception();
    }
    to->is_known = true;
  };
}

/// Opens a gate for each read when that read and all before it are complete. Reads are given to the tier in
/// the order of their numbers.
class GateKeeper {
 public:
  /// Returns when a transfer is complete, and throws nothing.
  using Wait = std::function<void(const HandedOver&)>;

  GateKeeper(std::unique_ptr<QueueGate> gate, Wait wait)
      : gate_(std::move(gate)), wait_(std::move(wait)), thread_([this] { run(); }) {}
  /// Opens the gate for all reads that were given to the tier.
  ~GateKeeper() {
    {
      const std::lock_guard turn(mutex_);
      is_ending_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  GateKeeper(const GateKeeper&) = delete;
  GateKeeper& operator=(const GateKeeper&) = delete;

  void handed_over(std::uint32_t number, std::shared_ptr<const HandedOver> read) {
    {
      const std::lock_guard turn(mutex_);
      reads_.emplace_back(number, std::move(read));
    }
    changed_.notify_one();
  }
  void hold(CopyQueue queue, std::uint32_t number) { gate_->hold(queue, number); }

 private:
  using Read = std::pair<std::uint32_t, std::shared_ptr<const HandedOver>>;

  std::optional<Read> next() {
    std::unique_lock turn(mutex_);
    changed_.wait(turn, [&] { return is_ending_ || !reads_.empty(); });
    if (reads_.empty()) return std::nullopt;
    Read read = std::move(reads_.front());
    reads_.pop_front();
    return read;
  }

  void run() {
    while (const std::optional<Read> read = next()) {
      wait_(*read->second);
      gate_->open(read->first);
    }
  }

  std::unique_ptr<QueueGate> gate_;
  Wait wait_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Read> reads_;
  bool is_ending_ = false;
  std::thread thread_;  // last, because it uses the others
};

template <class Tier>
class TieredDeviceDisk final : public DeviceDisk {
 public:
  template <typename... Options>
  explicit TieredDeviceDisk(DeviceQueues& queues, const Options&... options)
      : queues_(queues), tier_(options...) {
    try {
      if (auto gate = queues.make_gate())
        gate_.emplace(std::move(gate), [this](const HandedOver& read) { end_quietly(read); });
    } catch (const std::system_error&) {
      // The machine has no thread left for it: queues wait in host calls instead.
    }
  }

  std::optional<Extent> reserve(Bytes bytes, std::string* why_not) override {
    std::optional<Extent> extent = tier_.reserve(bytes, why_not);
    if (extent || releases_to_come_ == 0) return extent;
    queues_.finish_calls();
    return tier_.reserve(bytes, why_not);
  }
  void release(const Extent& extent) override {
    ++releases_to_come_;
    const auto give_back = [this, extent] {
      tier_.release(extent);
      --releases_to_come_;
    };
    try {
      queues_.call_beside_compute(give_back);
    } catch (const Error&) {
      // The device has failed. The tier frees the space when it is destroyed.
    }
  }

  Transfer write(const Extent& extent, const std::byte* from, Bytes bytes, CopyQueue queue,
                 std::int64_t tag) override {
    const auto transfer = std::make_shared<TierTransfer>();
    const auto begin = [=, this] { return tier_.write(extent, from, bytes, tag); };
    transfer->point = queues_.call(queue, hand_over(*transfer, begin));
    return transfer;
  }

  Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) override {
    const auto transfer = std::make_shared<TierTransfer>();
    transfer->number = ++reads_;
    const auto begin = [=, this] { return tier_.read(extent, to, bytes, tag); };
    transfer->point = queues_.call_beside_compute(
        [this, begin = hand_over(*transfer, begin), read = transfer->handed_over, number = transfer->number] {
          begin();
          if (gate_) gate_->handed_over(number, read);
        });
    return transfer;
  }

  void hold(CopyQueue queue, const Transfer& read) override {
    // Wait for the point first: a queued call that waits for another queued call might keep it from running.
    if (const auto& point = of_tier(read).point) point->hold(queue);
    if (gate_) return gate_->hold(queue, of_tier(read).number);
    queues_.call(queue, [this, read = of_tier(read).handed_over] { end_quietly(*read); });
  }

  void wait(const Transfer& transfer) override {
    const Nanoseconds begin = steady_now();
    try {
      if (const auto& point = of_tier(transfer).point) point->wait();
    } catch (const Error&) {
      // The device has failed, possibly because the disk had failed and the device computed with garbage.
      if (of_tier(transfer).handed_over->is_known) tell(transfer);
      throw;
    }
    const bool was_done = is_over(transfer);
    tell(transfer);
    if (!was_done) queues_.add_exposed(steady_now() - begin);
  }

  bool check(const Transfer& read) override {
    if (!is_over(read)) return false;
    tell(read);
    return true;
  }

  std::optional<Error> take_failure() override { return std::exchange(failure_, std::nullopt); }

  std::vector<DiskRecord> take_records() override {
    queues_.finish_calls();
    std::vector<DiskRecord> records = tier_.take_records();
    for (DiskRecord& record : records) {
      record.begin_ns = queues_.on_device_clock(record.begin_ns);
      record.end_ns = queues_.on_device_clock(record.end_ns);
    }
    return records;
  }

  std::optional<StoredBytes> take_stored() override {
    if constexpr (requires { tier_.take_stored(); }) {
      queues_.finish_calls();
      return tier_.take_stored();
    } else {
      return std::nullopt;
    }
  }

  std::string warning() const override { return tier_.facts().warning; }
  std::string description() const override { return describe(tier_.facts()); }

 private:
  bool is_over(const Transfer& transfer) const {
    const HandedOver& handed_over = *of_tier(transfer).handed_over;
    return handed_over.is_known && (handed_over.failure || tier_.is_done(handed_over.ticket));
  }
  /// Waits for a transfer that was given to the tier, and throws its failure.
  void end(const HandedOver& transfer) {
    if (transfer.failure) std::rethrow_exception(transfer.failure);
    tier_.wait(transfer.ticket);
  }
  /// Waits like `end`, ignoring a failure: `wait` or `check` reports it.
  void end_quietly(const HandedOver& transfer) noexcept {
    try {
      end(transfer);
    } catch (...) {
    }
  }
  /// Waits like `end`, and keeps a failure for take_failure.
  void tell(const Transfer& transfer) {
    try {
      end(*of_tier(transfer).handed_over);
    } catch (const Error& error) {
      failure_ = error;
      throw;
    }
  }

  DeviceQueues& queues_;
  std::atomic<int> releases_to_come_ = 0;  ///< extents that will be freed
  std::optional<Error> failure_;
  Tier tier_;
  std::uint32_t reads_ = 0;
  std::optional<GateKeeper> gate_;  ///< after the tier, because its thread uses the tier
};

}  // namespace

std::unique_ptr<DeviceDisk> open_tiered_device_disk(const DiskRequest& request, DeviceQueues& queues) {
  if (request.compressed) return std::make_unique<TieredDeviceDisk<CompressedTier>>(queues);
  if (request.folder.empty())
    throw input_error("no folder was given for the disk; only a modelled disk needs none",
                      "Give a folder: --disk DIR");
  DiskTierOptions options;
  options.checksums = request.checksums;
  return std::make_unique<TieredDeviceDisk<DiskTier>>(queues, request.folder, options);
}

}  // namespace offprof
