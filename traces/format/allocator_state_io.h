#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "traces/io/json_access.h"
#include "traces/model/allocator_state.h"

namespace offprof {

/// Appends the state as one JSON object, one segment per line.
void append_allocator_state(std::string& out, const AllocatorState& state);

/// Reads the state. Throws Error (input), with the place in the file, if a member is missing or a value is
/// impossible.
AllocatorState allocator_state_from_json(const JsonValue& json);

nlohmann::ordered_json to_json(const MemoryBesideAllocator& memory);
/// Reads the figures. Throws Error (input), with the place in the file, if a figure is missing or negative.
MemoryBesideAllocator memory_beside_allocator_from_json(const JsonValue& json);

}  // namespace offprof
