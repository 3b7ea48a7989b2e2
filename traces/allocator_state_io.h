#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "traces/allocator_state.h"
#include "traces/json_access.h"

namespace offprof {

/// Appends the state as one JSON object, a segment a line.
void append_allocator_state(std::string& out, const AllocatorState& state);

/// Throws Error (input), with the place, where something is missing or cannot be.
AllocatorState allocator_state_from_json(const JsonValue& json);

nlohmann::ordered_json to_json(const MemoryBesideAllocator& memory);
/// Throws Error (input), with the place, where a figure is missing or negative.
MemoryBesideAllocator memory_beside_allocator_from_json(const JsonValue& json);

}  // namespace offprof
