#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// A storage that lies on the device only around its uses: weights, gradients, an optimizer's state, values
/// that wait between shards. Counted from 0.
using PageId = std::int32_t;

/// What an operator does with a page.
struct PageUse {
  PageId page = -1;
  bool changes = false;  ///< it writes to it

  bool operator==(const PageUse&) const = default;
};

/// Carries out what a PageScheduler decides.
class PageExecutor {
 public:
  virtual ~PageExecutor() = default;
  /// Takes device memory for the page and begins to bring its bytes.
  virtual void fetch(PageId page) = 0;
  /// The compute stream waits until they are there.
  virtual void wait(PageId page) = 0;
  /// Gives the page's device memory back. `changed`: the device has written to it, so its bytes are saved
  /// first.
  virtual void evict(PageId page, bool changed) = 0;
  /// False: nobody has the page's tensors any more, though it has not vanished.
  virtual bool is_held(PageId /*page*/) const { return true; }
};

/// Decides which pages lie on the device. It knows no clock and no address, so that the same step always
/// takes the same memory.
///
/// Pages that an operator uses are there while it runs, whatever that takes. Beside them as many lie there as
/// `window_bytes` let, those in use counted. The order in which pages were used in the step that was learned
/// is the forecast for every step after it: pages are fetched ahead in that order, and where room is needed,
/// that page goes which is used last (Belady's rule). Before a step was learned, pages come when they are
/// used.
///
/// A page of a gradient, or of a value between shards, is there from `appear` to `vanish`; in between it is
/// as any other.
class PageScheduler {
 public:
  /// `executor` must outlive it.
  PageScheduler(Bytes window_bytes, PageExecutor& executor)
      : window_bytes_(window_bytes), executor_(executor) {}

  /// A page that does not exist yet.
  PageId add(Bytes bytes);
  /// It exists now: on the device, where it was made.
  void appear(PageId page);
  /// It exists no more; the executor need not give anything back.
  void vanish(PageId page);

  /// An operator that uses these begins: after it they are on the device. Calls nest. Where the executor
  /// throws, nothing is in use by this call.
  void begin_use(std::span<const PageUse> uses);
  /// It has ended.
  void end_use(std::span<const PageUse> uses);
  /// It has failed: nothing is asked of the executor.
  void abandon_use(std::span<const PageUse> uses) noexcept;

  /// All that exist lie on the device, whatever the window, until the next end_step.
  void bring_all();
  /// The step is over: no page is in use, and none lies on the device after it.
  void end_step();
  /// What the step used that ended last is the forecast from now on.
  void learn();

  bool exists(PageId page) const { return pages_[page].state != State::kGone; }
  bool is_on_device(PageId page) const {
    return pages_[page].state == State::kHere || pages_[page].state == State::kComing;
  }
  Bytes bytes(PageId page) const { return pages_[page].bytes; }
  Bytes window_bytes() const { return window_bytes_; }
  void set_window_bytes(Bytes bytes) { window_bytes_ = bytes; }
  Bytes device_bytes() const { return device_bytes_; }
  /// The most that operators have used at once.
  Bytes most_used_bytes() const { return most_used_bytes_; }

 private:
  enum class State : std::uint8_t { kGone, kAway, kComing, kHere };
  struct Page {
    Bytes bytes = 0;
    State state = State::kGone;
    bool changed = false;
    int uses = 0;                         ///< by operators that have begun and not ended
    std::uint32_t wanted = 0;             ///< the last forecast that wanted it on the device
    std::vector<std::size_t> forecast{};  ///< where it stands in forecast_
  };

  void use(const PageUse& use);
  void bring(std::span<const PageUse> uses);
  void fetch(PageId page);
  void fetch_ahead();
  void make_room(Bytes bytes);
  void wait(PageId page);
  void evict(PageId page);
  void evict_here(PageId page);
  PageId last_used() const;
  std::size_t next_use(const Page& page) const;
  void trim();
  Bytes limit() const;

  Bytes window_bytes_;
  bool has_all_ = false;  ///< bring_all was called
  PageExecutor& executor_;
  std::vector<Page> pages_;
  std::vector<PageId> used_;         ///< since the last end_step
  std::vector<PageId> used_before_;  ///< between that and the one before
  std::vector<PageId> forecast_;
  std::size_t next_ = 0;      ///< in forecast_: what comes after the last use
  std::uint32_t wanted_ = 1;  ///< counts forecasts
  Bytes device_bytes_ = 0;
  Bytes used_bytes_ = 0, most_used_bytes_ = 0;
};

}  // namespace offprof
