#pragma once

#include <string>
#include <string_view>

#include "traces/trace.h"

namespace offprof {

/// A fingerprint of the bytes, to tell whether two things are the same: 16 hexadecimal digits (64-bit
/// FNV-1a). Not meant to withstand somebody who wants two files to look the same.
std::string fingerprint(std::string_view bytes);

/// The same of a file's bytes, read in pieces. Throws Error (input) where it cannot be read.
std::string fingerprint_of_file(const std::string& path);

/// Of what was run: model, inputs, loss, optimiser, segments, shards. Two runs that have it in common make
/// the same step program.
std::string fingerprint_of_run(const ModelInfo& model, const RunSettings& settings);

}  // namespace offprof
