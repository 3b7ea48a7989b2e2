#pragma once

#include <optional>
#include <vector>

#include "engine/devices/virtual_gpu/values/collective_call.h"

namespace offprof {

/// Returns the device memory that the rank gives to the collective, in bytes: a part of the message of an
/// all-gather, nothing of a broadcast unless it is the root.
Bytes given_bytes(const CollectiveCall& call, int ranks);

/// Returns the device memory that the rank receives, in bytes.
Bytes received_bytes(const CollectiveCall& call, int ranks);

/// Computes what the rank receives from a collective of all ranks of a communicator. `given` is what each
/// rank gives; empty: unknown. Returns nullopt if the result is unknown, or of a number type that is not
/// carried. Sums are in the order of the ranks.
std::optional<std::vector<char>> combine(const CollectiveCall& call, int rank,
                                         const std::vector<std::vector<char>>& given);

/// Sums `ranks` equal buffers in place. Returns false if the numbers are of a type that is not carried.
bool sum_equal(std::vector<char>& numbers, NumberType type, int ranks);

}  // namespace offprof
