#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// A value of a JSON document with the place where it stands, which errors name: `t.json: program.events`.
/// Every function throws Error (input) where the value is not what is asked for. It must not outlive the
/// document.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, std::string where) : json_(&json), where_(std::move(where)) {}

  const nlohmann::json& json() const { return *json_; }
  const std::string& where() const { return where_; }

  /// The member of that name, which must be there.
  JsonValue at(std::string_view key) const;
  /// The member of that name; nullopt where it is missing or null.
  std::optional<JsonValue> find(std::string_view key) const;
  /// The element of an array.
  JsonValue element(std::size_t index) const;
  /// Number of elements; the value must be an array.
  std::size_t size() const;

  const std::string& as_string() const;
  bool as_bool() const;
  /// A finite number, not negative.
  double as_amount() const;
  std::uint64_t as_unsigned() const;
  /// A whole number from `low` to `high`.
  std::int64_t as_integer(std::int64_t low = 0,
                          std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// An array of such numbers.
  std::vector<std::int64_t> as_integers(std::int64_t low = 0,
                                        std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  std::vector<std::string> as_strings() const;
  /// The index of the string among `names`.
  std::size_t as_one_of(std::span<const std::string_view> names) const;

  /// Refuses members of other names.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  /// An Error (input) at this place: `<where>: <what>`.
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  const nlohmann::json* json_;
  std::string where_;
};

/// Parses a whole document without its top-level `traceEvents`, which are checked for syntax only, so that a
/// trace takes little memory. `name` stands for the text in errors, which say line and column.
nlohmann::json parse_document(const std::string& text, const std::string& name);

/// Refuses a document whose `schema` is not `expected`, and says what the file is instead.
void check_schema(const nlohmann::json& document, std::string_view expected, const std::string& name);

/// The text of `json`, `indent` spaces a level (-1: one line). Bytes that are no UTF-8, as file names may
/// hold, become U+FFFD.
std::string dump_json(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace offprof
