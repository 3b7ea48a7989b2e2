#include "traces/format/allocator_state_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

namespace offprof {
namespace {

constexpr std::array<std::string_view, 2> kPools = {"small", "large"};
constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();

void append_segment(std::string& out, const AllocatorSegment& segment) {
  fmt::format_to(std::back_inserter(out), "\n{{\"stream\": {}, \"pool\": \"{}\", \"expandable\": {}, ",
                 segment.stream, kPools[segment.is_large], segment.is_expandable);
  if (segment.is_expandable)
    fmt::format_to(std::back_inserter(out), "\"range\": {}, \"range_offset_bytes\": {}, ", segment.range,
                   segment.range_offset);
  out += "\"blocks\": [";
  const char* separator = "";
  for (const AllocatorBlock& block : segment.blocks) {
    fmt::format_to(std::back_inserter(out), "{}[{},{},{}]", separator, block.bytes,
                   block.allocated ? block.requested_bytes : 0, block.storage);
    separator = ",";
  }
  out += "]}";
}

/// Reads `[bytes, requested bytes, storage]`. A free block has 0 requested bytes.
AllocatorBlock read_block(const JsonValue& json) {
  AllocatorBlock block;
  block.bytes = json.element(0).as_integer(1);
  block.requested_bytes = json.element(1).as_integer(0, block.bytes);
  block.allocated = block.requested_bytes > 0;
  block.storage = static_cast<std::int32_t>(json.element(2).as_integer(-1, kMaxIndex));
  return block;
}

/// Reads the address range of an expandable segment. `next_range` is the number of the next new range. If the
/// range is missing, the segment begins a range of its own.
void read_place(const JsonValue& json, AllocatorSegment& segment, std::int32_t next_range) {
  segment.range = next_range;
  if (const auto range = json.find("range"))
    segment.range = static_cast<std::int32_t>(range->as_integer(0, next_range));
  if (const auto offset = json.find("range_offset_bytes")) segment.range_offset = offset->as_integer();
}

AllocatorSegment read_segment(const JsonValue& json, std::int32_t next_range) {
  AllocatorSegment segment;
  segment.stream = static_cast<std::int32_t>(json.at("stream").as_integer(0, kMostStreams - 1));
  segment.is_large = json.at("pool").as_one_of(kPools) == 1;
  segment.is_expandable = json.at("expandable").as_bool();
  if (segment.is_expandable) read_place(json, segment, next_range);
  const JsonValue blocks = json.at("blocks");
  for (std::size_t i = 0; i < blocks.size(); ++i) segment.blocks.push_back(read_block(blocks.element(i)));
  if (segment.blocks.empty()) blocks.fail("is empty");
  return segment;
}

}  // namespace

void append_allocator_state(std::string& out, const AllocatorState& state) {
  fmt::format_to(std::back_inserter(out), "{{\"settings\": {}, \"segments\": [",
                 dump_json(state.settings, -1));
  const char* separator = "";
  for (const AllocatorSegment& segment : state.segments) {
    out += separator;
    append_segment(out, segment);
    separator = ",";
  }
  out += "]}";
}

AllocatorState allocator_state_from_json(const JsonValue& json) {
  AllocatorState state;
  state.settings = json.at("settings").as_string();
  const JsonValue segments = json.at("segments");
  std::int32_t next_range = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    state.segments.push_back(read_segment(segments.element(i), next_range));
    next_range = std::max(next_range, state.segments.back().range + 1);
  }
  return state;
}

nlohmann::ordered_json to_json(const MemoryBesideAllocator& memory) {
  return {{"before_bytes", memory.before_bytes},
          {"warm_bytes", memory.warm_bytes},
          {"end_bytes", memory.end_bytes}};
}

MemoryBesideAllocator memory_beside_allocator_from_json(const JsonValue& json) {
  return {json.at("before_bytes").as_integer(), json.at("warm_bytes").as_integer(),
          json.at("end_bytes").as_integer()};
}

}  // namespace offprof
