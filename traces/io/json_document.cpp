#include "traces/io/json_document.h"

#include <fmt/format.h>

#include "traces/base/error.h"
#include "traces/io/document_builder.h"
#include "traces/io/json_parser.h"

namespace offprof {
namespace {

using Document = nlohmann::json;

std::string describe_kind(std::string_view kind) {
  if (kind == "offprof.trace") return "an offprof trace";
  if (kind == "offprof.policy") return "an offprof policy file";
  if (kind == "offprof.report") return "an offprof report";
  if (kind == "offprof.baseline") return "an offprof baseline";
  if (kind == "offprof.baselines") return "an offprof file of several baselines";
  if (kind == "offprof.gpu_profile") return "an offprof GPU profile";
  return "";
}

std::string what_it_is(const Document& document, std::string_view schema) {
  if (!document.is_object()) return "it is not a JSON object";
  if (const std::string kind = describe_kind(schema_kind(schema)); !kind.empty()) return "it is " + kind;
  if (!schema.empty()) return fmt::format("its schema is '{}'", schema);
  if (document.contains(kSkippedKey)) {
    return "it is a Chrome trace from another tool, without `program`, the step that offprof replays";
  }
  return "it has no `schema`";
}

std::string hint_for(std::string_view expected) {
  if (schema_kind(expected) == "offprof.trace") return "Record one: offprof run model.pt -o trace.json";
  if (schema_kind(expected) == "offprof.policy") return "Write one: offprof tune trace.json -o policy.json";
  if (schema_kind(expected) == "offprof.baselines")
    return "Write one: offprof gate trace.json --update --baseline baselines.json --key NAME";
  return "";
}

/// Puts every value into a tree.
class StrictBuilder final : public JsonHandler {
 public:
  explicit StrictBuilder(const std::string& name) : name_(name), tree_(name) {}
  Document take() { return tree_.take(); }

  void null() override { tree_.put(nullptr); }
  void boolean(bool value) override { tree_.put(value); }
  void negative(std::int64_t value) override { tree_.put(value); }
  void natural(std::uint64_t value) override { tree_.put(value); }
  void real(double value) override { tree_.put(value); }
  void string(std::string_view text) override { tree_.put(text); }
  void begin_object() override { tree_.open(Document::value_t::object); }
  void key(std::string_view name) override {
    if (tree_.has(name)) throw input_error(fmt::format("'{}' has '{}' twice in one object", name_, name));
    tree_.key(name);
  }
  void end_object() override { tree_.close(); }
  void begin_array() override { tree_.open(Document::value_t::array); }
  void end_array() override { tree_.close(); }

 private:
  const std::string& name_;
  TreeBuilder tree_;
};

}  // namespace

JsonDocument parse_trace_document(ByteSource& source, const std::string& name) {
  DocumentBuilder builder({"program", "dense_program"}, name);
  parse_json(source, builder, name);
  return builder.take();
}

Document parse_document(ByteSource& source, const std::string& name) {
  DocumentBuilder builder({}, name);
  parse_json(source, builder, name);
  return builder.take().root;
}

Document parse_document(const std::string& text, const std::string& name) {
  TextSource source(text);
  return parse_document(source, name);
}

Document parse_strict_document(ByteSource& source, const std::string& name) {
  StrictBuilder builder(name);
  parse_json(source, builder, name);
  return builder.take();
}

std::string schema_of(const Document& document) {
  if (!document.is_object()) return "";
  const auto found = document.find("schema");
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

std::string_view schema_kind(std::string_view schema) {
  return schema.substr(0, schema.find('/'));
}

void check_schema(const Document& document, std::string_view expected, const std::string& name) {
  const std::string schema = schema_of(document);
  if (schema == expected) return;
  const std::string_view kind = schema_kind(expected);
  if (schema_kind(schema) == kind) {
    throw input_error(
        fmt::format("'{}' has schema '{}'; this version of offprof reads '{}'", name, schema, expected),
        "Use the version of offprof that wrote the file, or create the file again.");
  }
  throw input_error(
      fmt::format("'{}' is not {}: {}", name, describe_kind(kind), what_it_is(document, schema)),
      hint_for(expected));
}

}  // namespace offprof
