#pragma once

#include <string>

#include "traces/json_document.h"
#include "traces/trace.h"

namespace offprof {

/// Reads a trace (`.json`, or gzip whatever its name) without its timeline. Throws Error (input) for a file
/// that is not there, is not JSON, is truncated, is of another schema version, or is a Chrome trace of
/// another tool (what it lacks is said), and for values out of range (their place in the file is said).
Trace read_trace(const std::string& path);

/// Likewise of a document that parse_trace_document made of the file `name`. The document's packed arrays
/// are used up.
Trace trace_from_document(JsonDocument& document, const std::string& name);

/// Reads a trace from text; `name` stands for it in errors.
Trace parse_trace(const std::string& text, const std::string& name);

/// The whole file, one event a line: valid Chrome trace JSON in Kineto's conventions.
std::string format_trace(const Trace& trace);

/// Writes beside, then renames: `path` holds either its old content or all of the new. `-` is standard
/// output; a name that ends in `.gz` compresses. Throws Error (input) where the path cannot be written or the
/// disk is full.
void write_trace(const std::string& path, const Trace& trace);

}  // namespace offprof
