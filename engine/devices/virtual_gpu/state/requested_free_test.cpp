#include "engine/devices/virtual_gpu/state/requested_free.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const int code[2] = {};
const void* const kAllocator = &code[0];
const void* const kProgram = &code[1];

TEST(RequestedFree, FindsTheEventsOfTheAllocator) {
  RequestedFree free;
  free.begin();
  free.event_recorded(kAllocator, 3);
  free.event_recorded(kAllocator, 4);
  free.event_recorded(kProgram, 5);  // after the allocator has returned
  EXPECT_THAT(free.take_points(), ElementsAre(3, 4));
  free.event_recorded(kAllocator, 6);  // for something else
  EXPECT_THAT(free.take_points(), IsEmpty());
}

TEST(RequestedFree, TakesNoEventsAfterABlockWasFreedAtOnce) {
  RequestedFree free;
  free.begin();
  free.end();
  free.event_recorded(kProgram, 1);
  EXPECT_THAT(free.take_points(), IsEmpty());
  free.begin();
  free.event_recorded(kAllocator, 2);
  free.event_recorded(kProgram, 3);
  EXPECT_THAT(free.take_points(), ElementsAre(2));
}

}  // namespace
}  // namespace offprof
