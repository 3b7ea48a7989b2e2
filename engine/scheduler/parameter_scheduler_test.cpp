#include "engine/scheduler/parameter_scheduler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace offprof {
namespace {

/// Records the calls: `fetch 1`, `wait 1`, `evict 1`, `save 1`.
class Log final : public PageExecutor {
 public:
  void fetch(PageId page) override { add("fetch", page); }
  void wait(PageId page) override { add("wait", page); }
  void evict(PageId page, bool changed) override { add(changed ? "save" : "evict", page); }
  bool is_held(PageId page) const override { return page != gone; }

  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  PageId refused = -1;  ///< fetching this page throws
  PageId lost = -1;     ///< waiting for this page throws
  PageId gone = -1;     ///< nobody holds this page any more

 private:
  void add(const std::string& what, PageId page) {
    if (what == "fetch" && page == refused) throw std::runtime_error("no memory");
    if (what == "wait" && page == lost) throw std::runtime_error("it does not come");
    lines_.push_back(what + " " + std::to_string(page));
  }
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

class ParameterSchedulerTest : public testing::Test {
 protected:
  /// Makes pages of 10 bytes each, which are off the device.
  void make(int pages, Bytes window) {
    for (int i = 0; i < pages; ++i) scheduler_.appear(scheduler_.add(10));
    scheduler_.end_step();
    scheduler_.set_window_bytes(window);
    log_.take();
  }
  void use(const std::vector<PageUse>& uses) {
    scheduler_.begin_use(uses);
    scheduler_.end_use(uses);
  }
  void use(PageId page) { use(std::vector<PageUse>{{page}}); }
  /// Runs a step that uses pages in this order, and learns it.
  void learn(const std::vector<PageId>& order) {
    for (const PageId page : order) use(page);
    scheduler_.end_step();
    scheduler_.learn();
    log_.take();
  }

  Log log_;
  ParameterScheduler scheduler_{1000, log_};
};

TEST_F(ParameterSchedulerTest, LoadsUsedPagesAndKeepsThemWithinTheWindow) {
  make(2, 10);
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0"}));
  use(0);
  EXPECT_EQ(log_.take(), Lines{});
  use(1);
  EXPECT_EQ(log_.take(), (Lines{"evict 0", "fetch 1", "wait 1"}));
}

TEST_F(ParameterSchedulerTest, DoesNotPrefetchAReleasedPage) {
  make(3, 20);
  learn({0, 1, 2});
  log_.gone = 1;
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0"}));
  use(2);
  EXPECT_EQ(log_.take(), (Lines{"fetch 2", "wait 2"}));
}

TEST_F(ParameterSchedulerTest, SavesAChangedPageOnceWhenItIsEvicted) {
  make(1, 0);
  use({{0, true}});
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "save 0"}));
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "evict 0"}));
}

TEST_F(ParameterSchedulerTest, LoadsAllPagesOfAnOperatorWhateverTheWindow) {
  make(3, 10);
  scheduler_.begin_use(std::vector<PageUse>{{0}, {1}, {2}});
  EXPECT_EQ(scheduler_.device_bytes(), 30);
  EXPECT_EQ(scheduler_.most_used_bytes(), 30);
  scheduler_.end_use(std::vector<PageUse>{{0}, {1}, {2}});
  EXPECT_EQ(scheduler_.device_bytes(), 10);
}

TEST_F(ParameterSchedulerTest, PrefetchesInTheLearnedOrderBeforeItWaits) {
  make(3, 20);
  learn({2, 0, 1});
  use(2);
  EXPECT_EQ(log_.take(), (Lines{"fetch 2", "fetch 0", "wait 2"}));
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"evict 2", "fetch 1", "wait 0"}));
}

TEST_F(ParameterSchedulerTest, EvictsThePageWithTheFarthestNextUse) {
  make(3, 20);
  learn({0, 1, 2, 1});
  use(0);
  log_.take();
  use(1);  // 0 is not used again, 1 is
  EXPECT_EQ(log_.take(), (Lines{"evict 0", "fetch 2", "wait 1"}));
  use(2);
  use(1);
  EXPECT_EQ(log_.take(), Lines{"wait 2"});
}

TEST_F(ParameterSchedulerTest, CountsAPageOnceThatAnOperatorUsesTwice) {
  make(1, 0);
  use({{0}, {0}});
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "evict 0"}));
}

TEST_F(ParameterSchedulerTest, KeepsThePagesOfAnOuterOperator) {
  make(2, 10);
  scheduler_.begin_use(std::vector<PageUse>{{0}});
  use(1);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "fetch 1", "wait 1", "evict 1"}));
  EXPECT_TRUE(scheduler_.is_on_device(0));
  scheduler_.end_use(std::vector<PageUse>{{0}});
}

TEST_F(ParameterSchedulerTest, KeepsAGradientPageUntilItVanishes) {
  make(1, 10);
  const PageId gradient = scheduler_.add(10);
  use(0);
  log_.take();
  scheduler_.appear(gradient);
  EXPECT_EQ(log_.take().size(), 1U);  // one of the two is evicted
  scheduler_.vanish(gradient);
  EXPECT_FALSE(scheduler_.exists(gradient));
  scheduler_.end_step();
  EXPECT_EQ(scheduler_.device_bytes(), 0);
}

TEST_F(ParameterSchedulerTest, LeavesNothingInUseWhenAFetchFails) {
  make(2, 20);
  log_.refused = 1;
  EXPECT_THROW(scheduler_.begin_use(std::vector<PageUse>{{0}, {1}}), std::runtime_error);
  log_.refused = -1;
  scheduler_.end_step();  // aborts if a page is in use
  EXPECT_EQ(scheduler_.device_bytes(), 0);
  use(1);
  EXPECT_TRUE(scheduler_.is_on_device(1));
}

TEST_F(ParameterSchedulerTest, FetchesAPageAgainWithoutASaveWhenALoadFails) {
  make(2, 20);
  log_.lost = 0;
  EXPECT_THROW(scheduler_.begin_use(std::vector<PageUse>{{0, true}, {1}}), std::runtime_error);
  EXPECT_FALSE(scheduler_.is_on_device(0));
  log_.lost = -1;
  log_.take();
  use(std::vector<PageUse>{{0}, {1}});
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "wait 1"}));
  scheduler_.end_step();
  EXPECT_EQ(log_.take(), (Lines{"evict 0", "evict 1"}));
}

TEST_F(ParameterSchedulerTest, KeepsAllPagesUntilTheStepEnds) {
  make(3, 10);
  scheduler_.bring_all();
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "fetch 1", "fetch 2"}));
  use(1);
  EXPECT_EQ(log_.take(), Lines{"wait 1"});
  scheduler_.end_step();
  EXPECT_EQ(log_.take(), (Lines{"wait 0", "evict 0", "evict 1", "wait 2", "evict 2"}));
}

/// Executes like a device, and checks that no content is lost.
class Memory final : public PageExecutor {
 public:
  void fetch(PageId page) override {
    RC_ASSERT(!at(page).on_device);
    at(page).on_device = at(page).coming = true;
    at(page).here = at(page).away;
  }
  void wait(PageId page) override {
    RC_ASSERT(at(page).coming);
    at(page).coming = false;
  }
  void evict(PageId page, bool changed) override {
    RC_ASSERT(at(page).on_device && !at(page).coming);
    if (changed) at(page).away = at(page).here;
    RC_ASSERT(at(page).away == at(page).here);
    at(page).on_device = false;
  }

  struct Page {
    int here = 0, away = 0;
    bool on_device = false, coming = false;
  };
  Page& at(PageId page) {
    pages_.resize(std::max<std::size_t>(pages_.size(), static_cast<std::size_t>(page) + 1));
    return pages_[static_cast<std::size_t>(page)];
  }

 private:
  std::vector<Page> pages_;
};

RC_GTEST_PROP(ParameterSchedulerProperty, OperatorsSeeTheLastWrittenContentWithinTheWindow, ()) {
  const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 20)));
  const auto window = static_cast<Bytes>(*rc::gen::inRange(0, 100));
  const auto steps = *rc::gen::container<std::vector<std::vector<PageUse>>>(
      rc::gen::container<std::vector<PageUse>>(rc::gen::build<PageUse>(
          rc::gen::set(&PageUse::page, rc::gen::inRange(0, static_cast<int>(sizes.size()))),
          rc::gen::set(&PageUse::changes))));
  Memory memory;
  ParameterScheduler scheduler(window, memory);
  std::vector<int> written(sizes.size());
  for (const int size : sizes) {
    const PageId page = scheduler.add(size);
    memory.at(page).on_device = true;
    scheduler.appear(page);
  }
  for (const std::vector<PageUse>& step : steps) {
    for (const PageUse& use : step) {
      scheduler.begin_use({&use, 1});
      Memory::Page& page = memory.at(use.page);
      RC_ASSERT(page.on_device && !page.coming);
      RC_ASSERT(page.here == written[static_cast<std::size_t>(use.page)]);
      if (use.changes) page.here = ++written[static_cast<std::size_t>(use.page)];
      RC_ASSERT(scheduler.device_bytes() <= std::max(window, scheduler.bytes(use.page)));
      scheduler.end_use({&use, 1});
      RC_ASSERT(scheduler.device_bytes() <= window);
    }
    scheduler.end_step();
    RC_ASSERT(scheduler.device_bytes() == 0);
    scheduler.learn();
  }
}

}  // namespace
}  // namespace offprof
