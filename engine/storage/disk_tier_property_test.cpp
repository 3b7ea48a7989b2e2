// Compares random sequences of reservations, writes, reads and releases with a model in memory.

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/disk_tier_under_test.h"

namespace offprof {
namespace {

/// Action on the tier. Numbers are taken modulo the number of candidates, so that any list of actions is
/// valid.
struct Action {
  /// 0, 1: reserve and write; 2: write again; 3, 4: read; 5: release; 6: wait for the reads.
  int kind = 0;
  int pick = 0;  ///< chooses the extent
  int bytes = 1;
};

std::ostream& operator<<(std::ostream& out, const Action& action) {
  return out << "{" << action.kind << ", " << action.pick << ", " << action.bytes << "}";
}

constexpr int kMostBytes = 60'000;

rc::Gen<std::vector<Action>> actions() {
  const auto bytes =
      rc::gen::oneOf(rc::gen::inRange(1, kMostBytes), rc::gen::element(512, 4096, 8192, 16'384));
  return rc::gen::container<std::vector<Action>>(rc::gen::build<Action>(
      rc::gen::set(&Action::kind, rc::gen::inRange(0, 7)),
      rc::gen::set(&Action::pick, rc::gen::inRange(0, 1000)), rc::gen::set(&Action::bytes, bytes)));
}

using Data = std::shared_ptr<std::vector<std::byte>>;

/// Pairs a tier with copies in memory of the data that it must hold.
class Model {
 public:
  explicit Model(DiskTier& tier) : tier_(tier) {}
  ~Model() {
    for (const Live& live : live_) tier_.release(live.extent);
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  void perform(const Action& action) {
    if (action.kind <= 1) return reserve(action.bytes);
    if (action.kind == 6) return check_reads();
    if (live_.empty()) return;
    const std::size_t which = static_cast<std::size_t>(action.pick) % live_.size();
    if (action.kind == 2) return write(live_[which]);
    if (action.kind <= 4) return read(live_[which], action.bytes);
    tier_.release(live_[which].extent);
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(which));
  }

  void check_reads() {
    for (const Read& read : reads_) {
      tier_.wait(read.ticket);
      RC_ASSERT(std::equal(read.back->begin(), read.back->end(), read.expected->begin()));
    }
    reads_.clear();
  }

 private:
  struct Live {
    Extent extent;
    Data data;
  };
  struct Read {
    DiskTier::Ticket ticket;
    Data back, expected;
  };

  void reserve(Bytes bytes) {
    const auto extent = tier_.reserve(bytes);
    if (!extent) return;
    live_.push_back({*extent, nullptr});
    write(live_.back());
    check_extents();
  }

  void write(Live& live) {
    live.data = std::make_shared<std::vector<std::byte>>(disk_pattern(live.extent.bytes, ++seed_));
    kept_.push_back(live.data);
    tier_.write(live.extent, live.data->data(), live.extent.bytes);
  }

  void read(const Live& live, Bytes wanted) {
    const auto back = std::make_shared<std::vector<std::byte>>(std::min(wanted, live.extent.bytes));
    reads_.push_back(
        {tier_.read(live.extent, back->data(), static_cast<Bytes>(back->size())), back, live.data});
  }

  void check_extents() const {
    Bytes used = 0;
    for (const Live& live : live_) used += live.extent.bytes;
    RC_ASSERT(tier_.used_bytes() == used);
    for (std::size_t i = 0; i + 1 < live_.size(); ++i) {
      const Extent &extent = live_[i].extent, &added = live_.back().extent;
      RC_ASSERT(extent.offset + extent.bytes <= added.offset || added.offset + added.bytes <= extent.offset);
    }
  }

  std::vector<Data> kept_;  ///< buffers that may still be written from
  std::vector<Live> live_;
  std::vector<Read> reads_;
  unsigned seed_ = 0;
  DiskTier& tier_;
};

class DiskTierProperty : public EveryDiskTier {};

TEST_P(DiskTierProperty, ReturnsTheDataThatWereWritten) {
  DiskTierOptions limited = options();
  limited.capacity_bytes = 8 * kMostBytes;
  DiskTier tier(folder_.path(), limited);
  const bool ok = rc::check([&] {
    Model model(tier);
    for (const Action& action : *actions()) model.perform(action);
    model.check_reads();
  });
  EXPECT_TRUE(ok);
  EXPECT_EQ(tier.used_bytes(), 0);
}

INSTANTIATE_TEST_SUITE_P(, DiskTierProperty, every_disk_tier(testing::Bool()), name_of_disk_tier);

}  // namespace
}  // namespace offprof
