#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

constexpr Bytes kPiece = 2 * kMiB;

/// Returns a mapped piece of an address range with one free block.
AllocatorSegment piece(std::int32_t range, Bytes offset, std::int32_t stream = 0) {
  return {stream, false, true, {{kPiece, 0, false, -1}}, range, offset};
}

Trace trace_with(std::vector<AllocatorSegment> segments) {
  Trace trace = sample_trace();
  trace.program.allocator = AllocatorState{"expandable_segments:True", std::move(segments)};
  return trace;
}

/// Returns the message of the Error that reading such a trace throws.
std::string error_with(std::vector<AllocatorSegment> segments) {
  try {
    parse_trace(format_trace(trace_with(std::move(segments))), "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

TEST(AllocatorStateInATrace, ReadsBackTheState) {
  const Trace trace = trace_with({{0, true, false, {{20 * kMiB, 20 * kMiB - 100, true, -1}}},
                                  piece(0, 20 * kMiB),
                                  piece(0, 60 * kMiB),
                                  piece(1, 0, 1)});
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").program.allocator, trace.program.allocator);
}

TEST(AllocatorStateInATrace, GivesExpandableSegmentsWithoutARangeTheirOwnRange) {
  const Trace trace = trace_with({piece(0, 0), piece(1, 0)});
  json document = json::parse(format_trace(trace));
  for (json& segment : document["program"]["allocator"]["segments"]) {
    segment.erase("range");
    segment.erase("range_offset_bytes");
  }
  EXPECT_EQ(parse_trace(document.dump(), "t.json").program.allocator, trace.program.allocator);
}

TEST(CorruptAllocatorState, RejectsABlockOfAStorageThatTheStepAllocates) {
  EXPECT_THAT(error_with({{0, true, false, {{512, 100, true, 2}}}}),
              HasSubstr("program.allocator.segments[0]: a block holds a storage that the step allocates"));
}

TEST(CorruptAllocatorState, RejectsAFreeBlockThatNamesAStorage) {
  EXPECT_THAT(error_with({{0, true, false, {{512, 0, false, 0}}}}),
              HasSubstr("a free block names a storage"));
}

TEST(CorruptAllocatorState, RejectsANumberThatNoStreamHas) {
  EXPECT_THAT(error_with({{kMostStreams, true, false, {{512, 0, false, -1}}}}),
              HasSubstr("program.allocator.segments[0].stream"));
}

TEST(CorruptAllocatorState, RejectsTouchingOrOverlappingPiecesOfAnAddressRange) {
  for (const Bytes offset : {Bytes{0}, kPiece, kPiece * 2})
    EXPECT_THAT(error_with({piece(0, kPiece), piece(0, offset)}),
                HasSubstr("segments[1]: it does not follow the previous piece"));
}

TEST(CorruptAllocatorState, RejectsAnAddressRangeOfTwoStreams) {
  EXPECT_THAT(error_with({piece(0, 0, 0), piece(0, 2 * kPiece, 1)}),
              HasSubstr("segments[1]: its address range belongs to another stream or pool"));
}

TEST(CorruptAllocatorState, RejectsAnAddressRangeInsideAnother) {
  EXPECT_THAT(error_with({piece(0, 0), piece(1, 0), piece(0, 2 * kPiece)}),
              HasSubstr("segments[2]: address ranges must be numbered in order of appearance"));
  EXPECT_THAT(error_with({piece(0, 0), {0, false, false, {{kPiece, 0, false, -1}}}, piece(0, 2 * kPiece)}),
              HasSubstr("segments[2]: the pieces of its address range are not consecutive"));
}

TEST(CorruptAllocatorState, RejectsAnAddressRangeBeyondAllAddresses) {
  const Bytes far = std::numeric_limits<Bytes>::max() - kPiece;
  EXPECT_THAT(error_with({piece(0, far), piece(1, far)}), HasSubstr("the sum of addresses exceeds"));
}

}  // namespace
}  // namespace offprof
