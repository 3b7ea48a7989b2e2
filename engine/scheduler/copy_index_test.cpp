#include "engine/scheduler/copy_index.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <utility>

namespace offprof {
namespace {

TEST(CopyIndex, FindsNothingInAnEmptyIndex) {
  EXPECT_EQ(CopyIndex().find({1, 0}), CopyIndex::kNone);
}

TEST(CopyIndex, DistinguishesVersionsOfAStorage) {
  CopyIndex index;
  index.add({7, 0});
  index.add({7, 1});
  EXPECT_EQ(index.find({7, 0}), 0);
  EXPECT_EQ(index.find({7, 1}), 1);
  EXPECT_EQ(index.find({7, 2}), CopyIndex::kNone);
}

RC_GTEST_PROP(CopyIndexProperty, FindsWhatAMapFinds, ()) {
  constexpr std::int64_t kStorages = 200, kApart = 64;  // many storages share a home slot
  CopyIndex index;
  std::map<std::pair<std::int64_t, std::uint32_t>, CopyId> expected;
  CopyId copies = 0;
  const auto steps = *rc::gen::inRange(0, 600);
  for (int i = 0; i < steps; ++i) {
    const StorageVersion key{*rc::gen::inRange<std::int64_t>(0, kStorages) * kApart,
                             *rc::gen::inRange<std::uint32_t>(0, 2)};
    const auto known = expected.find({key.storage, key.version});
    RC_ASSERT(index.find(key) == (known == expected.end() ? CopyIndex::kNone : known->second));
    if (known == expected.end()) {
      index.add(key);
      expected[{key.storage, key.version}] = copies++;
    } else if (*rc::gen::inRange(0, 3) > 0) {
      index.remove(known->second);
      expected.erase(known);
    }
  }
  for (const auto& [key, copy] : expected) RC_ASSERT(index.find({key.first, key.second}) == copy);
}

}  // namespace
}  // namespace offprof
