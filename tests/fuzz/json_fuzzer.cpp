#include <nlohmann/json.hpp>

#include "tests/fuzz/fuzz.h"
#include "traces/io/json_access.h"
#include "traces/io/json_document.h"

namespace {

/// Returns the document's tree with its packed arrays expanded.
nlohmann::json unpacked(const nlohmann::json& json, const offprof::JsonDocument& document) {
  if (json.is_binary()) {
    auto array = nlohmann::json::array();
    const offprof::CompactArray& compact = document.compact.at(json.get_binary().subtype());
    for (std::size_t i = 0; i < compact.size(); ++i) array.push_back(compact.element(i));
    return array;
  }
  nlohmann::json copy = json;
  if (json.is_structured())
    for (auto& element : copy) element = unpacked(element, document);
  return copy;
}

}  // namespace

/// Fuzzes JSON documents. Packed arrays must have the same elements as in a tree, and a written document must
/// equal the parsed one.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  return read_or_refuse([&] {
    const std::string text(as_text(data, size));
    const nlohmann::json tree = parse_document(text, "t.json");
    TextSource source(text);
    const JsonDocument document = parse_trace_document(source, "t.json");
    OFFPROF_CHECK(unpacked(document.root, document) == tree);
    const std::string written = dump_json(tree);
    check_shown(written);
    OFFPROF_CHECK(parse_document(written, "written.json") == tree);
  });
}
