#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Id of a page: a storage that is on the device only around its uses. It holds parameters, gradients, an
/// optimizer's state, or values that wait between layer slices. Counted from 0.
using PageId = std::int32_t;

/// Use of a page by an operator.
struct PageUse {
  PageId page = -1;
  bool changes = false;  ///< the operator writes to it

  bool operator==(const PageUse&) const = default;
};

/// Executes the decisions of a ParameterScheduler.
class PageExecutor {
 public:
  virtual ~PageExecutor() = default;
  /// Allocates device memory for the page and starts to load its bytes.
  virtual void fetch(PageId page) = 0;
  /// Makes the compute stream wait until the bytes are loaded.
  virtual void wait(PageId page) = 0;
  /// Frees the page's device memory. `changed`: the device has written to it, so its bytes are saved first.
  virtual void evict(PageId page, bool changed) = 0;
  /// Returns false if nobody holds the page's tensors any more, although it has not vanished.
  virtual bool is_held(PageId /*page*/) const { return true; }
};

/// Decides which pages are on the device. It uses neither times nor addresses, so that the same step always
/// takes the same memory.
///
/// The pages that an operator uses are on the device while it runs, whatever their size. Other pages may be
/// there too, as long as all together fit into `window_bytes`. The order of page uses in the learned step is
/// the forecast for every later step: pages are prefetched in that order, and to make room, the page whose
/// next use is farthest away is evicted (Belady's rule). Before a step is learned, pages are loaded when they
/// are used.
///
/// A page of a gradient, or of a value between slices, exists from `appear` to `vanish`; in between it is
/// like any other.
class ParameterScheduler {
 public:
  /// `executor` must outlive this object.
  ParameterScheduler(Bytes window_bytes, PageExecutor& executor)
      : window_bytes_(window_bytes), executor_(executor) {}

  /// Adds a page that does not exist yet.
  PageId add(Bytes bytes);
  /// Makes the page exist: on the device, where it was computed.
  void appear(PageId page);
  /// Makes the page exist off the device, where the executor has its bytes.
  void appear_saved(PageId page);
  /// Ends the page's existence; the executor need not free anything.
  void vanish(PageId page);

  /// Begins an operator that uses these pages, and loads them. Calls nest. If the executor throws, this call
  /// leaves nothing in use.
  void begin_use(std::span<const PageUse> uses);
  /// Ends the operator.
  void end_use(std::span<const PageUse> uses);
  /// Ends a failed operator: does not call the executor.
  void abandon_use(std::span<const PageUse> uses) noexcept;

  /// Loads all existing pages, whatever the window, until the next end_step.
  void bring_all();
  /// Ends the step: no page may be in use, and all are evicted.
  void end_step();
  /// Makes the page uses of the step that ended last the forecast from now on.
  void learn();

  bool exists(PageId page) const { return pages_[page].state != State::kGone; }
  bool is_on_device(PageId page) const {
    return pages_[page].state == State::kHere || pages_[page].state == State::kComing;
  }
  Bytes bytes(PageId page) const { return pages_[page].bytes; }
  Bytes window_bytes() const { return window_bytes_; }
  void set_window_bytes(Bytes bytes) { window_bytes_ = bytes; }
  Bytes device_bytes() const { return device_bytes_; }
  /// Returns the peak of the bytes that operators used at once.
  Bytes most_used_bytes() const { return most_used_bytes_; }

 private:
  enum class State : std::uint8_t { kGone, kAway, kComing, kHere };
  struct Page {
    Bytes bytes = 0;
    State state = State::kGone;
    bool changed = false;
    int uses = 0;                         ///< by operators that are running
    std::uint32_t wanted = 0;             ///< number of the last forecast pass that wanted it on the device
    std::vector<std::size_t> forecast{};  ///< its positions in forecast_
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
  bool has_all_ = false;  ///< bring_all was called in this step
  PageExecutor& executor_;
  std::vector<Page> pages_;
  std::vector<PageId> used_;         ///< since the last end_step
  std::vector<PageId> used_before_;  ///< in the step before
  std::vector<PageId> forecast_;
  std::size_t next_ = 0;      ///< position in forecast_ after the last use
  std::uint32_t wanted_ = 1;  ///< number of forecast passes
  Bytes device_bytes_ = 0;
  Bytes used_bytes_ = 0, most_used_bytes_ = 0;
};

}  // namespace offprof
