#include "simulator/tuner/settings/movable_version.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/sample_program.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MovableVersions, TensorsOfOneContentAreOneVersion) {
  ProgramSketch sketch;
  const std::int32_t x = sketch.alloc(100);
  const SavedId a = sketch.save(x), b = sketch.save_part(x, 40), changed = sketch.save(x, 1);
  for (const SavedId tensor : {changed, b, a}) sketch.node(tensor);
  const auto versions = movable_versions(Step(sketch.program()));
  ASSERT_EQ(versions.size(), 2U);
  EXPECT_THAT(versions[0].tensors, ElementsAre(a, b));
  EXPECT_THAT(versions[1].tensors, ElementsAre(changed));
  EXPECT_EQ(versions[0].bytes, 100);
  EXPECT_EQ(versions[0].first_pack, 1U);          // after the allocation
  EXPECT_EQ(versions[0].last_first_unpack, 10U);  // of `a`, whose node is the last
  EXPECT_EQ(versions[0].last_release, 12U);
}

TEST(MovableVersions, ExcludesTensorsThatMayNotMove) {
  const Step step(ChainSketch::program({LayerSketch{.output_stays = true}}));
  EXPECT_THAT(movable_versions(step), IsEmpty());
}

TEST(MovableVersions, MarksAVersionThatIsNeverUnpacked) {
  ProgramSketch sketch;
  const SavedId a = sketch.save(sketch.alloc(100));
  sketch.release(a);
  const auto versions = movable_versions(Step(sketch.program()));
  EXPECT_EQ(versions[0].last_first_unpack, kNoEvent);
  EXPECT_EQ(versions[0].last_release, 2U);
}

TEST(DistinctSizes, AreSortedAndAtLeastTheThreshold) {
  const std::vector<MovableVersion> versions = {{0, 30, {}}, {1, 10, {}}, {2, 30, {}}, {3, 20, {}}};
  EXPECT_THAT(distinct_sizes(versions), ElementsAre(10, 20, 30));
  EXPECT_THAT(distinct_sizes(versions, 15), ElementsAre(20, 30));
}

}  // namespace
}  // namespace offprof
