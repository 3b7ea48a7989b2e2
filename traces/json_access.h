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

#include "traces/json_document.h"

namespace offprof {

/// A value of a JSON document with the place where it stands, which errors name: `t.json: program.events`.
/// Every function throws Error (input) where the value is not what is asked for. It must not outlive the
/// document.
class JsonValue {
 public:
  JsonValue(const nlohmann::json& json, std::string where) : json_(&json), where_(std::move(where)) {}
  /// The root of a document, whose packed arrays are read where they stand.
  JsonValue(JsonDocument& document, std::string where)
      : json_(&document.root), where_(std::move(where)), document_(&document) {}

  /// Not of a packed array.
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
  /// Calls `take` with the index of each element of such an array, and its value.
  template <typename Take>
  void each_integer(std::int64_t low, std::int64_t high, const Take& take) const {
    const PackedArray* const array = packed();
    if (array == nullptr || array->is_table) {
      for (std::size_t i = 0; i < size(); ++i) take(i, integer_at(i, low, high));
      return;
    }
    array->integers.each([&](std::size_t i, std::int64_t value) {
      take(i, value >= low && value <= high ? value : integer_at(i, low, high));
    });
  }
  std::vector<std::string> as_strings() const;
  /// The index of the string among `names`.
  std::size_t as_one_of(std::span<const std::string_view> names) const;

  /// The rows of a packed array of rows; nullptr for other values.
  const PackedTable* packed_table() const;
  /// Gives the memory of a packed array back: it must not be read again. Does nothing for other values.
  void release() const;

  /// Refuses members of other names.
  void allow_only(std::initializer_list<std::string_view> keys) const;

  /// An Error (input) at this place: `<where>: <what>`.
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;

 private:
  JsonValue child(const nlohmann::json& json, std::string where) const;
  bool is_array() const { return json_->is_array() || packed() != nullptr; }
  /// nullptr: it is not packed.
  PackedArray* packed() const;
  std::string type_name() const;
  std::int64_t integer_at(std::size_t index, std::int64_t low, std::int64_t high) const;

  const nlohmann::json* json_;
  std::string where_;
  JsonDocument* document_ = nullptr;                ///< nullptr: nothing in it is packed
  std::shared_ptr<const nlohmann::json> unpacked_;  ///< an element of a packed array, which `json_` is
};

/// The text of `json`, `indent` spaces a level (-1: one line). Bytes that are no UTF-8, as file names may
/// hold, become U+FFFD; what is not printable is escaped, as JSON allows.
std::string dump_json(const nlohmann::ordered_json& json, int indent = 2);

}  // namespace offprof
