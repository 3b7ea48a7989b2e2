#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "traces/byte_source.h"
#include "traces/packed_array.h"

namespace offprof {

/// A trace as a tree of values. The top-level `traceEvents` are left out: an empty array stands in their
/// place. Within `program` and `dense_program` each array of whole numbers or of rows is packed, and a binary
/// value, which no JSON text can make, stands in its place: its subtype is the array's index in `packed`.
/// JsonValue reads packed arrays as it reads others.
struct JsonDocument {
  nlohmann::json root;
  std::vector<PackedArray> packed;
};

/// Parses a whole document in little more memory than JsonDocument takes. `name` stands for the source in
/// errors. Throws Error (input) as parse_json does, and for a tree of more values than any of our files has.
JsonDocument parse_trace_document(ByteSource& source, const std::string& name);

/// Parses a whole document as a plain tree, but for the top-level `traceEvents`. Throws likewise.
nlohmann::json parse_document(ByteSource& source, const std::string& name);
nlohmann::json parse_document(const std::string& text, const std::string& name);

/// Parses a whole document as a plain tree, with nothing left out. Throws likewise, and where an object names
/// a member twice.
nlohmann::json parse_strict_document(ByteSource& source, const std::string& name);

/// Refuses a document whose `schema` is not `expected`, and says what the file is instead.
void check_schema(const nlohmann::json& document, std::string_view expected, const std::string& name);

/// The document's `schema`; empty where it has none, or is no object.
std::string schema_of(const nlohmann::json& document);

}  // namespace offprof
