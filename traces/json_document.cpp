#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "traces/error.h"
#include "traces/json_access.h"

namespace offprof {
namespace {

using Document = nlohmann::json;

constexpr std::string_view kSkippedKey = "traceEvents";
/// A trace has fewer than ten levels; a limit keeps hostile files from eating memory.
constexpr std::size_t kMaxDepth = 200;

/// Builds a document from nlohmann's parser events (its SAX interface), less the value of the top-level
/// `traceEvents`, in the place of which an empty array stands.
class DocumentBuilder {
 public:
  explicit DocumentBuilder(const std::string& text, const std::string& name) : text_(text), name_(name) {}

  Document take() { return std::move(root_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(Document::number_integer_t value) { return put(value); }
  bool number_unsigned(Document::number_unsigned_t value) { return put(value); }
  bool number_float(Document::number_float_t value, const Document::string_t&) { return put(value); }
  bool string(Document::string_t& value) { return skipped_ > 0 || put(std::move(value)); }
  bool binary(Document::binary_t&) { return true; }  // text has none

  bool start_object(std::size_t) { return open(Document::value_t::object); }
  bool start_array(std::size_t) { return open(Document::value_t::array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(Document::string_t& name) {
    if (skipped_ > 0) return true;
    skip_next_ = open_.size() == 1 && name == kSkippedKey;
    member_ = &(*open_.back())[name];
    if (skip_next_) *member_ = Document::array();
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const Document::exception& error);

 private:
  template <typename Value>
  bool put(Value&& value) {
    if (skipped_ == 0 && !std::exchange(skip_next_, false)) *place() = std::forward<Value>(value);
    return true;
  }

  /// Where the next value goes.
  Document* place() {
    if (open_.empty()) return &root_;
    Document& parent = *open_.back();
    if (parent.is_object()) return member_;
    parent.get_ref<Document::array_t&>().emplace_back();
    return &parent.get_ref<Document::array_t&>().back();
  }

  bool open(Document::value_t type) {
    if (skipped_ > 0 || std::exchange(skip_next_, false)) {
      ++skipped_;
      return true;
    }
    if (open_.size() == kMaxDepth) throw input_error(fmt::format("'{}' is nested too deeply", name_));
    Document* value = place();
    *value = Document(type);
    open_.push_back(value);
    return true;
  }

  bool close() {
    if (skipped_ > 0) {
      --skipped_;
    } else {
      open_.pop_back();
    }
    return true;
  }

  const std::string& text_;
  const std::string& name_;
  Document root_;
  std::vector<Document*>
      open_;  ///< a parent gets no second child while one is open, so they stay where they are
  Document* member_ = nullptr;  ///< of the innermost object
  bool skip_next_ = false;      ///< the key before was the skipped one
  std::size_t skipped_ = 0;     ///< open arrays and objects within the skipped value
};

/// The part of nlohmann's message behind its own position.
std::string syntax_trouble(const Document::exception& error) {
  const std::string_view message = error.what();
  const auto at = message.find(": ");
  return std::string(at == std::string_view::npos ? message : message.substr(at + 2));
}

std::string line_and_column(std::string_view text, std::size_t position) {
  const std::string_view before = text.substr(0, position == 0 ? 0 : position - 1);
  const auto line = std::ranges::count(before, '\n') + 1;
  const auto line_begin = before.rfind('\n');
  const auto column = before.size() - (line_begin == std::string_view::npos ? 0 : line_begin + 1) + 1;
  return fmt::format("line {}, column {}", line, column);
}

bool DocumentBuilder::parse_error(std::size_t position, const std::string&,
                                  const Document::exception& error) {
  if (std::ranges::all_of(text_, [](unsigned char c) { return std::isspace(c); })) {
    throw input_error(fmt::format("'{}' is empty", name_));
  }
  if (position > text_.size()) {
    throw input_error(
        fmt::format("'{}' ends in the middle, after {} bytes: it is truncated", name_, text_.size()),
        "Copy or record it again.");
  }
  throw input_error(fmt::format("'{}' is not JSON: {}: {}", name_, line_and_column(text_, position),
                                syntax_trouble(error)));
}

std::string string_at(const Document& document, const char* key) {
  const auto found = document.find(key);
  return found != document.end() && found->is_string() ? found->get<std::string>() : "";
}

/// `offprof.trace` of `offprof.trace/1`.
std::string_view kind_of(std::string_view schema) {
  return schema.substr(0, schema.find('/'));
}

std::string describe_kind(std::string_view kind) {
  if (kind == "offprof.trace") return "an offprof trace";
  if (kind == "offprof.policy") return "an offprof policy file";
  if (kind == "offprof.report") return "an offprof report";
  if (kind == "offprof.gpu_profile") return "a GPU profile of offprof";
  return "";
}

std::string what_it_is(const Document& document, std::string_view schema) {
  if (!document.is_object()) return "it holds no JSON object";
  if (const std::string kind = describe_kind(kind_of(schema)); !kind.empty()) return "it is " + kind;
  if (!schema.empty()) return fmt::format("its schema is '{}'", schema);
  if (document.contains(kSkippedKey)) {
    return "it is a Chrome trace of another tool, which lacks `program`, the step that offprof replays";
  }
  return "it has no `schema`";
}

std::string hint_for(std::string_view expected) {
  return kind_of(expected) == "offprof.trace" ? "Record one with: offprof run MODEL.pt -o trace.json"
         : kind_of(expected) == "offprof.policy"
             ? "Make one with: offprof tune --trace trace.json -o policy.json"
             : "";
}

}  // namespace

Document parse_document(const std::string& text, const std::string& name) {
  DocumentBuilder builder(text, name);
  Document::sax_parse(text, &builder);
  return builder.take();
}

void check_schema(const Document& document, std::string_view expected, const std::string& name) {
  const std::string schema = document.is_object() ? string_at(document, "schema") : "";
  if (schema == expected) return;
  const std::string_view kind = kind_of(expected);
  if (kind_of(schema) == kind) {
    throw input_error(fmt::format("'{}' has schema '{}'; this program reads '{}'", name, schema, expected),
                      "Use the version of offprof that wrote it, or make it again.");
  }
  throw input_error(
      fmt::format("'{}' is not {}: {}", name, describe_kind(kind), what_it_is(document, schema)),
      hint_for(expected));
}

}  // namespace offprof
