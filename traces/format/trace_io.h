#pragma once

#include <string>

#include "traces/io/json_document.h"
#include "traces/model/trace.h"

namespace offprof {

/// Reads a trace (`.json`, or gzip under any name) without its timeline. Throws Error (input) if the file
/// does not exist, is not JSON, is truncated, has another schema version, or is a Chrome trace of another
/// tool (the error names the missing parts), and if a value is out of range (the error names its place).
Trace read_trace(const std::string& path);

/// Reads a trace from a document that parse_trace_document made from the file `name`. Frees the document's
/// packed arrays as it reads them.
Trace trace_from_document(JsonDocument& document, const std::string& name);

/// Reads a trace from text; `name` is its name in errors.
Trace parse_trace(const std::string& text, const std::string& name);

/// Formats the whole file, one event per line: valid Chrome trace JSON in Kineto's conventions.
std::string format_trace(const Trace& trace);

/// Writes a temporary file beside `path` and renames it, so that `path` always holds either its old content
/// or all of the new content. `-` is standard output; a name that ends in `.gz` compresses. Throws Error
/// (input) if the path cannot be written or the disk is full.
void write_trace(const std::string& path, const Trace& trace);

}  // namespace offprof
