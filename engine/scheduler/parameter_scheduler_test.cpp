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
class Log final : public ParameterExecutor {
 public:
  void fetch(ParameterGroupId group) override { add("fetch", group); }
  void wait(ParameterGroupId group) override { add("wait", group); }
  void evict(ParameterGroupId group, bool changed) override { add(changed ? "save" : "evict", group); }
  bool is_held(ParameterGroupId group) const override { return group != gone; }

  std::vector<std::string> take() { return std::exchange(lines_, {}); }
  ParameterGroupId refused = -1;  ///< fetching this group throws
  ParameterGroupId lost = -1;     ///< waiting for this group throws
  ParameterGroupId gone = -1;     ///< nobody holds this group any more

 private:
  void add(const std::string& what, ParameterGroupId group) {
    if (what == "fetch" && group == refused) throw std::runtime_error("no memory");
    if (what == "wait" && group == lost) throw std::runtime_error("it does not come");
    lines_.push_back(what + " " + std::to_string(group));
  }
  std::vector<std::string> lines_;
};

using Lines = std::vector<std::string>;

class ParameterSchedulerTest : public testing::Test {
 protected:
  /// Makes groups of 10 bytes each, which are off the device.
  void make(int groups, Bytes window) {
    for (int i = 0; i < groups; ++i) scheduler_.appear(scheduler_.add(10));
    scheduler_.end_step();
    scheduler_.set_window_bytes(window);
    log_.take();
  }
  void use(const std::vector<ParameterGroupUse>& uses) {
    scheduler_.begin_use(uses);
    scheduler_.end_use(uses);
  }
  void use(ParameterGroupId group) { use(std::vector<ParameterGroupUse>{{group}}); }
  /// Runs a step that uses groups in this order, and learns it.
  void learn(const std::vector<ParameterGroupId>& order) {
    for (const ParameterGroupId group : order) use(group);
    scheduler_.end_step();
    scheduler_.learn();
    log_.take();
  }

  Log log_;
  ParameterScheduler scheduler_{1000, log_};
};

TEST_F(ParameterSchedulerTest, LoadsUsedGroupsAndKeepsThemWithinTheWindow) {
  make(2, 10);
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0"}));
  use(0);
  EXPECT_EQ(log_.take(), Lines{});
  use(1);
  EXPECT_EQ(log_.take(), (Lines{"evict 0", "fetch 1", "wait 1"}));
}

TEST_F(ParameterSchedulerTest, DoesNotPrefetchAReleasedGroup) {
  make(3, 20);
  learn({0, 1, 2});
  log_.gone = 1;
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0"}));
  use(2);
  EXPECT_EQ(log_.take(), (Lines{"fetch 2", "wait 2"}));
}

TEST_F(ParameterSchedulerTest, SavesAChangedGroupOnceWhenItIsEvicted) {
  make(1, 0);
  use({{0, true}});
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "save 0"}));
  use(0);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "evict 0"}));
}

TEST_F(ParameterSchedulerTest, LoadsAllGroupsOfAnOperatorWhateverTheWindow) {
  make(3, 10);
  scheduler_.begin_use(std::vector<ParameterGroupUse>{{0}, {1}, {2}});
  EXPECT_EQ(scheduler_.device_bytes(), 30);
  EXPECT_EQ(scheduler_.most_used_bytes(), 30);
  scheduler_.end_use(std::vector<ParameterGroupUse>{{0}, {1}, {2}});
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

TEST_F(ParameterSchedulerTest, EvictsTheGroupWithTheFarthestNextUse) {
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

TEST_F(ParameterSchedulerTest, CountsAGroupOnceThatAnOperatorUsesTwice) {
  make(1, 0);
  use({{0}, {0}});
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "evict 0"}));
}

TEST_F(ParameterSchedulerTest, KeepsTheGroupsOfAnOuterOperator) {
  make(2, 10);
  scheduler_.begin_use(std::vector<ParameterGroupUse>{{0}});
  use(1);
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "fetch 1", "wait 1", "evict 1"}));
  EXPECT_TRUE(scheduler_.is_on_device(0));
  scheduler_.end_use(std::vector<ParameterGroupUse>{{0}});
}

TEST_F(ParameterSchedulerTest, LoadsAGroupThatAppearsSavedAndDoesNotSaveItAgain) {
  const ParameterGroupId group = scheduler_.add(10);
  scheduler_.appear_saved(group);
  EXPECT_TRUE(scheduler_.exists(group));
  EXPECT_EQ(scheduler_.device_bytes(), 0);
  use(group);
  scheduler_.end_step();
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "evict 0"}));
}

TEST_F(ParameterSchedulerTest, KeepsAGradientGroupUntilItVanishes) {
  make(1, 10);
  const ParameterGroupId gradient = scheduler_.add(10);
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
  EXPECT_THROW(scheduler_.begin_use(std::vector<ParameterGroupUse>{{0}, {1}}), std::runtime_error);
  log_.refused = -1;
  scheduler_.end_step();  // aborts if a group is in use
  EXPECT_EQ(scheduler_.device_bytes(), 0);
  use(1);
  EXPECT_TRUE(scheduler_.is_on_device(1));
}

TEST_F(ParameterSchedulerTest, FetchesAGroupAgainWithoutASaveWhenALoadFails) {
  make(2, 20);
  log_.lost = 0;
  EXPECT_THROW(scheduler_.begin_use(std::vector<ParameterGroupUse>{{0, true}, {1}}), std::runtime_error);
  EXPECT_FALSE(scheduler_.is_on_device(0));
  log_.lost = -1;
  log_.take();
  use(std::vector<ParameterGroupUse>{{0}, {1}});
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "wait 0", "wait 1"}));
  scheduler_.end_step();
  EXPECT_EQ(log_.take(), (Lines{"evict 0", "evict 1"}));
}

TEST_F(ParameterSchedulerTest, KeepsAllGroupsUntilTheStepEnds) {
  make(3, 10);
  scheduler_.bring_all();
  EXPECT_EQ(log_.take(), (Lines{"fetch 0", "fetch 1", "fetch 2"}));
  use(1);
  EXPECT_EQ(log_.take(), Lines{"wait 1"});
  scheduler_.end_step();
  EXPECT_EQ(log_.take(), (Lines{"wait 0", "evict 0", "evict 1", "wait 2", "evict 2"}));
}

/// Executes like a device, and checks that no content is lost.
class Memory final : public ParameterExecutor {
 public:
  void fetch(ParameterGroupId group) override {
    RC_ASSERT(!at(group).on_device);
    at(group).on_device = at(group).coming = true;
    at(group).here = at(group).away;
  }
  void wait(ParameterGroupId group) override {
    RC_ASSERT(at(group).coming);
    at(group).coming = false;
  }
  void evict(ParameterGroupId group, bool changed) override {
    RC_ASSERT(at(group).on_device && !at(group).coming);
    if (changed) at(group).away = at(group).here;
    RC_ASSERT(at(group).away == at(group).here);
    at(group).on_device = false;
  }

  struct Group {
    int here = 0, away = 0;
    bool on_device = false, coming = false;
  };
  Group& at(ParameterGroupId group) {
    groups_.resize(std::max<std::size_t>(groups_.size(), static_cast<std::size_t>(group) + 1));
    return groups_[static_cast<std::size_t>(group)];
  }

 private:
  std::vector<Group> groups_;
};

RC_GTEST_PROP(ParameterSchedulerProperty, OperatorsSeeTheLastWrittenContentWithinTheWindow, ()) {
  const auto sizes = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 20)));
  const auto window = static_cast<Bytes>(*rc::gen::inRange(0, 100));
  const auto steps = *rc::gen::container<std::vector<std::vector<ParameterGroupUse>>>(
      rc::gen::container<std::vector<ParameterGroupUse>>(rc::gen::build<ParameterGroupUse>(
          rc::gen::set(&ParameterGroupUse::group, rc::gen::inRange(0, static_cast<int>(sizes.size()))),
          rc::gen::set(&ParameterGroupUse::changes))));
  Memory memory;
  ParameterScheduler scheduler(window, memory);
  std::vector<int> written(sizes.size());
  for (const int size : sizes) {
    const ParameterGroupId group = scheduler.add(size);
    memory.at(group).on_device = true;
    scheduler.appear(group);
  }
  for (const std::vector<ParameterGroupUse>& step : steps) {
    for (const ParameterGroupUse& use : step) {
      scheduler.begin_use({&use, 1});
      Memory::Group& group = memory.at(use.group);
      RC_ASSERT(group.on_device && !group.coming);
      RC_ASSERT(group.here == written[static_cast<std::size_t>(use.group)]);
      if (use.changes) group.here = ++written[static_cast<std::size_t>(use.group)];
      RC_ASSERT(scheduler.device_bytes() <= std::max(window, scheduler.bytes(use.group)));
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
