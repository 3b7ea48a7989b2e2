#include "engine/devices/virtual_gpu/state/requested_free.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const int code[2] = {}, events[7] = {};
const void* const kAllocator = &code[0];
const void* const kProgram = &code[1];

TEST(RequestedFree, FindsTheEventsOfTheAllocator) {
  RequestedFree free;
  free.begin();
  free.event_recorded(kAllocator, &events[3], 3);
  free.event_recorded(kAllocator, &events[4], 4);
  free.event_recorded(kProgram, &events[5], 5);  // after the allocator has returned
  EXPECT_THAT(free.take_points(), ElementsAre(3, 4));
  free.event_recorded(kAllocator, &events[6], 6);  // for something else
  EXPECT_THAT(free.take_points(), IsEmpty());
}

TEST(RequestedFree, KnowsTheEventsOfTheAllocator) {
  RequestedFree free;
  free.event_recorded(kAllocator, &events[0], 0);  // before any request
  free.begin();
  free.event_recorded(kAllocator, &events[1], 1);
  free.event_recorded(kProgram, &events[2], 2);
  EXPECT_FALSE(free.is_of_allocator(&events[0]));
  EXPECT_TRUE(free.is_of_allocator(&events[1]));
  EXPECT_FALSE(free.is_of_allocator(&events[2]));
}

TEST(RequestedFree, TakesNoEventsAfterABlockWasFreedAtOnce) {
  RequestedFree free;
  free.begin();
  free.end();
  free.event_recorded(kProgram, &events[1], 1);
  EXPECT_THAT(free.take_points(), IsEmpty());
  free.begin();
  free.event_recorded(kAllocator, &events[2], 2);
  free.event_recorded(kProgram, &events[3], 3);
  EXPECT_THAT(free.take_points(), ElementsAre(2));
}

}  // namespace
}  // namespace offprof
