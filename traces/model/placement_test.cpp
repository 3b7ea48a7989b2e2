#include "traces/model/placement.h"

#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

TEST(Placement, ParsesAndFormatsTheSameText) {
  for (const char* name : {"device", "host", "disk", "recompute", "bits", "bits+host", "bits+disk",
                           "quantize:uint8:128+host", "cast:bfloat16"})
    EXPECT_EQ(to_string(parse_placement(name)), name);
}

TEST(Placement, HasATransformAndAPlace) {
  EXPECT_EQ(parse_placement("quantize:uint8+host"), (Placement{"quantize:uint8", Place::kHost}));
  EXPECT_EQ(parse_placement("quantize:uint8"), (Placement{"quantize:uint8", Place::kDevice}));
  EXPECT_EQ(parse_placement("host"), (Placement{"", Place::kHost}));
}

TEST(Placement, IgnoresTheIdentityTransform) {
  EXPECT_EQ(parse_placement("identity"), (Placement{"", Place::kDevice}));
  EXPECT_EQ(parse_placement("identity+host"), (Placement{"", Place::kHost}));
}

TEST(Placement, RejectsOtherForms) {
  for (const char* name : {"", "+", "+host", "bits+", "bits+disc", "host+bits", "bits+host+host", "Bits",
                           "a b", "bits+recompute", "recompute+host", "host+host"})
    EXPECT_THROW(parse_placement(name), Error) << name;
}

}  // namespace
}  // namespace offprof
