#include "traces/analysis/save_sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_trace.h"

namespace offprof {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

TEST(SaveSites, CombineTheLayersOfAStack) {
  StepProgram program = sample_trace().program;
  const auto name = [&](const char* text) {
    program.names.emplace_back(text);
    return static_cast<std::int32_t>(program.names.size() - 1);
  };
  program.saved.resize(1);
  program.saved.push_back(program.saved.front());
  program.saved[0].module = name("model.layers.0.mlp");
  program.saved[1].module = name("model.layers.11.mlp");
  program.saved[0].line = program.saved[1].line = name("model.py:3");
  const SavedBySite saved = saved_by_site(program);
  ASSERT_THAT(saved, SizeIs(1));
  EXPECT_EQ(saved.begin()->first, (SaveSite{"aten::relu", "model.layers.*.mlp", "model.py:3"}));
  EXPECT_EQ(saved.begin()->second.tensors, 2);
}

TEST(SaveSites, SortByGrowth) {
  const SavedBySite base = {{{"a", "", ""}, {1, 10}}, {{"b", "", ""}, {1, 10}}, {{"c", "", ""}, {1, 10}}};
  const SavedBySite now = {{{"a", "", ""}, {1, 5}}, {{"b", "", ""}, {1, 30}}, {{"c", "", ""}, {1, 10}}};
  const auto differences = site_differences(base, now);
  ASSERT_THAT(differences, SizeIs(2));
  EXPECT_EQ(differences[0].site.op, "b");
  EXPECT_EQ(differences[0].difference(), 20);
  EXPECT_EQ(differences[1].difference(), -5);
}

TEST(SaveSites, IgnoreLinesThatMoved) {
  const SavedBySite base = {{{"a", "m", "f.py:10"}, {1, 10}}, {{"a", "m", "f.py:20"}, {1, 10}}};
  const SavedBySite now = {{{"a", "m", "f.py:11"}, {1, 10}}, {{"a", "m", "f.py:21"}, {1, 10}}};
  EXPECT_THAT(site_differences(base, now), IsEmpty());
  const SavedBySite more = {{{"a", "m", "f.py:11"}, {1, 10}}, {{"a", "m", "f.py:21"}, {1, 12}}};
  EXPECT_THAT(site_differences(base, more), SizeIs(2));
}

TEST(SaveSites, IgnoreFilesThatWereRenamed) {
  const SavedBySite base = {{{"a", "m", "f.py:10"}, {1, 10}}, {{"a", "n", "f.py:20"}, {1, 10}}};
  const SavedBySite now = {{{"a", "m", "g.py:10"}, {1, 10}}, {{"a", "n", "g.py:20"}, {1, 12}}};
  EXPECT_THAT(site_differences(base, now), SizeIs(2));
  for (const SiteDifference& difference : site_differences(base, now)) EXPECT_EQ(difference.site.module, "n");
}

TEST(SaveSites, AreUnknownIfASideListsNone) {
  EXPECT_THAT(site_differences({}, {{{"a", "", ""}, {1, 10}}}), IsEmpty());
}

TEST(InUseAtPeak, IsWhatWasAllocatedAndNotFreedByThePlaceThatSavedOrAllocatedIt) {
  StepProgram program;
  program.names = {"aten::gelu", "forward (model.py:12)", "layers.3.mlp", "model.py:7"};
  program.storages = {{100}, {200}, {400}, {50}};
  const auto allocate = [&](std::int32_t op, std::int32_t storage) {
    program.events.insert(program.events.end(),
                          {{EventKind::kOpBegin, op}, {EventKind::kAlloc, storage}, {EventKind::kOpEnd, op}});
  };
  allocate(0, 0);
  allocate(1, 1);
  program.events.push_back({EventKind::kFree, 1});
  allocate(1, 2);  // the peak
  program.events.push_back({EventKind::kFree, 2});
  allocate(0, 3);
  SavedTensor saved;
  saved.storage = 0;
  saved.op = 0;
  saved.module = 2;
  saved.line = 3;
  program.saved = {saved};
  const SavedBySite expected = {{{"aten::gelu", "layers.*.mlp", "model.py:7"}, {1, 100}},
                                {{"forward", "", "model.py:12"}, {1, 400}}};
  EXPECT_EQ(in_use_at_peak(program), expected);
}

}  // namespace
}  // namespace offprof
