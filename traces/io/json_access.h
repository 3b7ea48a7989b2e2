#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/io/json_document.h"

namespace offprof {

/// Value of a JSON document together with its place, which errors name: `t.json: program.events`. Every
/// function throws Error (input) if the value does not have the requested type or range. A JsonValue must not
/// outlive its document.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, std::string where) : json_(&json), where_(std::move(where)) {}
  /// Root of a document, whose packed arrays are read in place.
  JsonValue(JsonDocument& document, std::string where)
      : json_(&document.root), where_(std::move(where)), document_(&document) {}

  /// Returns the JSON value. It must not be called for a packed array.
  const nlohmann::json& json() const { return *json_; }
  const std::string& where() const { return where_; }

  /// Returns the member of that name, which must exist.
  JsonValue at(std::string_view key) const;
  /// Returns the member of that name; nullopt if it is missing or null.
  std::optional<JsonValue> find(std::string_view key) const;
  /// Returns an element of an array.
  JsonValue element(std::size_t index) const;
  /// Returns the number of elements of an array.
  std::size_t size() const;

  const std::string& as_string() const;
  bool as_bool() const;
  /// Returns a finite number that is not negative.
  double as_amount() const;
  std::uint64_t as_unsigned() const;
  /// Returns a whole number from `low` to `high`.
  std::int64_t as_integer(std::int64_t low = 0,
                          std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// Returns an array of whole numbers from `low` to `high`.
  std::vector<std::int64_t> as_integers(std::int64_t low = 0,
                                        std::int64_t high = std::numeric_limits<std::int64_t>::max()) const;
  /// Calls `take` with the index and the value of each element of such an array.
  template <typename Take>
  void each_integer(std::int64_t low, std::int64_t high, const Take& take) const {
    const CompactArray* const array = compact();
    if (array == nullptr || array->is_table) {
      for (std::size_t i = 0; i < size(); ++i) take(i, integer_at(i, low, high));
      return;
    }
    array->integers.each([&](std::size_t i, std::int64_t value) {
      take(i, value >= low && value <= high ? value : integer_at(i, low, high));
    });
  }
  std::vector<std::string> as_strings() const;
  /// Returns the index of the string in `names`.
  std::size_t as_one_of(std::span<const std::string_view> names) const;

  /// Returns the rows of a packed array of rows; nullptr for other values.
  const CompactTable* compact_table() const;
  /// Frees the memory of a packed array, which must not be read again. Does nothing for other values.
  void release() const;

  /// Throws Error (input) if the object has a member of another name.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  /// Throws Error (input) with this place: `<where>: <what>`.
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  JsonValue child(const nlohmann::json& json, std::string where) const;
  bool is_array() const { return json_->is_array() || compact() != nullptr; }
  /// Returns nullptr if the value is not packed.
  CompactArray* compact() const;
  std::string type_name() const;
  std::int64_t integer_at(std::size_t index, std::int64_t low, std::int64_t high) const;

  const nlohmann::json* json_;
  std::string where_;
  JsonDocument* document_ = nullptr;                ///< nullptr: the document has no packed values
  std::shared_ptr<const nlohmann::json> unpacked_;  ///< element of a packed array; `json_` points to it
};

/// Formats `json` with `indent` spaces per level (-1: on one line). Bytes that are not UTF-8, as in some file
/// names, become U+FFFD. Characters that are not printable are escaped, as JSON allows.
std::string dump_json(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace offprof
