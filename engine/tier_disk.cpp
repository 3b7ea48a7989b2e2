#include "engine/tier_disk.h"

#include <atomic>
#include <exception>
#include <utility>

#include "traces/steady_clock.h"

namespace offprof {
namespace {

/// What is known of a transfer from where it is handed over to the tier.
struct HandedOver {
  std::atomic<bool> is_known = false;  ///< set after the others
  DiskTier::Ticket ticket = 0;
  std::exception_ptr failure;  ///< the tier did not take it
};

struct TierTransfer final : DiskTransfer {
  // Apart from `point`, since work that is called may use it, but not let go of what is the device's.
  std::shared_ptr<HandedOver> handed_over = std::make_shared<HandedOver>();
  std::unique_ptr<QueuePoint> point;  ///< where it is handed over; nullptr: it is
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

template <class Tier>
class TierDisk final : public DeviceDisk {
 public:
  template <typename... Options>
  explicit TierDisk(DeviceQueues& queues, const Options&... options) : queues_(queues), tier_(options...) {}

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
      // The device has failed. Its space goes with the tier.
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
    const auto begin = [=, this] { return tier_.read(extent, to, bytes, tag); };
    transfer->point = queues_.call_beside_compute(hand_over(*transfer, begin));
    return transfer;
  }

  void hold(CopyQueue queue, const Transfer& read) override {
    // Work that waited for other work to be called might keep it from that.
    if (const auto& point = of_tier(read).point) point->hold(queue);
    queues_.call(queue, [this, read = of_tier(read).handed_over] {
      try {
        end(*read);
      } catch (...) {
        // Whoever checks the read is told.
      }
    });
  }

  void wait(const Transfer& transfer) override {
    const Nanoseconds begin = steady_now();
    try {
      if (const auto& point = of_tier(transfer).point) point->wait();
    } catch (const Error&) {
      // The device has failed; perhaps because the disk had, and it computed with what was not read.
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
  /// Waits for one that is handed over, and throws what came of it.
  void end(const HandedOver& transfer) {
    if (transfer.failure) std::rethrow_exception(transfer.failure);
    tier_.wait(transfer.ticket);
  }
  /// Likewise to the thread that drives the device.
  void tell(const Transfer& transfer) {
    try {
      end(*of_tier(transfer).handed_over);
    } catch (const Error& error) {
      failure_ = error;
      throw;
    }
  }

  DeviceQueues& queues_;
  std::atomic<int> releases_to_come_ = 0;  ///< of space that is on its way back
  std::optional<Error> failure_;
  Tier tier_;
};

}  // namespace

std::unique_ptr<DeviceDisk> open_tier_disk(const DiskRequest& request, DeviceQueues& queues) {
  if (request.compressed) return std::make_unique<TierDisk<CompressedTier>>(queues);
  if (request.folder.empty())
    throw input_error("only a modelled disk needs no folder, and this one is real", "Give one: --disk DIR");
  DiskTierOptions options;
  options.checksums = request.checksums;
  return std::make_unique<TierDisk<DiskTier>>(queues, request.folder, options);
}

}  // namespace offprof
