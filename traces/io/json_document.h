#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "traces/io/byte_source.h"
#include "traces/io/compact_array.h"

namespace offprof {

/// A trace as a tree of values. The top-level `traceEvents` are left out and replaced by an empty array. In
/// `program` and `dense_program`, each array of whole numbers or of rows is packed. A binary value, which no
/// JSON text can contain, replaces it; its subtype is the index of the array in `packed`. JsonValue reads
/// packed arrays like other arrays.
struct JsonDocument {
  nlohmann::json root;
  std::vector<CompactArray> compact;
};

/// Parses a whole document, with little more memory than the JsonDocument needs. `name` is the name of the
/// source in errors. Throws Error (input) like parse_json, and if the tree has more values than any of our
/// files.
JsonDocument parse_trace_document(ByteSource& source, const std::string& name);

/// Parses a whole document as a plain tree without the top-level `traceEvents`. Throws the same errors.
nlohmann::json parse_document(ByteSource& source, const std::string& name);
nlohmann::json parse_document(const std::string& text, const std::string& name);

/// Parses a whole document as a plain tree and leaves nothing out. Throws the same errors, and Error (input)
/// if an object has two members of one name.
nlohmann::json parse_strict_document(ByteSource& source, const std::string& name);

/// Throws Error (input) if the document's `schema` is not `expected`, and reports the kind of file that it
/// is.
void check_schema(const nlohmann::json& document, std::string_view expected, const std::string& name);

/// Returns the name of a schema without its version: `offprof.trace` for `offprof.trace/1`.
std::string_view schema_kind(std::string_view schema);

/// Returns the document's `schema`; empty if it has none or is not an object.
std::string schema_of(const nlohmann::json& document);

}  // namespace offprof
