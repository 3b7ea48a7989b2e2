#include "traces/format/saved_tensors_io.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "traces/format/program_columns.h"

namespace offprof {
namespace {

constexpr std::array<std::string_view, 9> kMovabilities = {
    "movable", "parameter",          "buffer",          "input",   "resident",
    "empty",   "unsupported_layout", "parameter_group", "unpacked"};
static_assert(kMovabilities.size() == static_cast<std::size_t>(Movability::kUnpacked) + 1);

constexpr std::array<std::string_view, 11> kColumns = {
    "storage", "version", "movability", "is_parameter",   "escapes", "op",
    "dtype",   "sizes",   "strides",    "storage_offset", "bytes"};

void append_saved_row(std::string& out, const SavedTensor& saved) {
  append(out, "\n[{},{},\"{}\",{},{},{},{},[{}],[{}],{},{}]", saved.storage, saved.version,
         kMovabilities.at(static_cast<std::size_t>(saved.movability)), saved.is_parameter, saved.escapes,
         saved.op, quoted(saved.layout->dtype), fmt::join(saved.layout->sizes, ","),
         fmt::join(saved.layout->strides, ","), saved.storage_offset, saved.bytes);
}

/// Index in a row of each of kColumns. Columns may be added or come in another order.
using ColumnPlaces = std::array<std::size_t, kColumns.size()>;

ColumnPlaces read_columns(const JsonValue& json) {
  const auto names = json.as_strings();
  ColumnPlaces places{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const auto found = std::ranges::find(names, kColumns[i]);
    if (found == names.end()) json.fail(fmt::format("column '{}' is missing", kColumns[i]));
    places[i] = static_cast<std::size_t>(found - names.begin());
  }
  return places;
}

SavedTensor read_saved_row(const JsonValue& row, const ColumnPlaces& places) {
  std::size_t column = 0;  // cells are read in the order of kColumns
  const auto next = [&] { return row.element(places[column++]); };
  SavedTensor saved;
  saved.storage = static_cast<std::int32_t>(next().as_integer(-1, kMaxIndex));
  saved.version = static_cast<std::uint32_t>(next().as_integer(0, kMaxVersion));
  saved.movability = static_cast<Movability>(next().as_one_of(kMovabilities));
  saved.is_parameter = next().as_bool();
  saved.escapes = next().as_bool();
  saved.op = static_cast<std::int32_t>(next().as_integer(0, kMaxIndex));
  TensorLayout layout;
  layout.dtype = next().as_string();
  layout.sizes = next().as_integers();
  layout.strides = next().as_integers();
  saved.layout = std::move(layout);
  saved.storage_offset = next().as_integer();
  saved.bytes = next().as_integer();
  return saved;
}

/// Reads rows from packed columns, without building a tree for them.
class SavedTable {
 public:
  SavedTable(const CompactTable& table, const ColumnPlaces& places) : table_(table), places_(places) {
    for (const nlohmann::json& value : table.distinct()) distinct_.push_back(read_distinct(value));
  }

  /// Returns false if a cell has a wrong type or value.
  bool read(std::size_t row, SavedTensor& saved) {
    std::size_t column = 0;  // cells are read in the order of kColumns
    const auto integer = [&](auto& to, std::int64_t low, std::int64_t high) {
      const std::size_t place = places_[column++];
      const std::int64_t value = table_.value(row, place);
      to = static_cast<std::remove_reference_t<decltype(to)>>(value);
      return table_.is_integer(place) && value >= low && value <= high;
    };
    const auto distinct = [&](auto& to, auto Distinct::*member) {
      const auto* value = distinct_at(row, places_[column++], member);
      if (value != nullptr) to = *value;
      return value != nullptr;
    };
    const auto layout = [&](SharedLayout& to) {
      const std::array places = {places_[column], places_[column + 1], places_[column + 2]};
      column += places.size();
      return read_layout(row, places, to);
    };
    return integer(saved.storage, -1, kMaxIndex) && integer(saved.version, 0, kMaxVersion) &&
           distinct(saved.movability, &Distinct::movability) &&
           distinct(saved.is_parameter, &Distinct::boolean) && distinct(saved.escapes, &Distinct::boolean) &&
           integer(saved.op, 0, kMaxIndex) && layout(saved.layout) &&
           integer(saved.storage_offset, 0, kMaxInteger) && integer(saved.bytes, 0, kMaxInteger);
  }

  bool has_all_columns() const {
    return std::ranges::all_of(places_, [&](std::size_t place) { return place < table_.columns(); });
  }

 private:
  /// Possible interpretations of a cell's value.
  struct Distinct {
    std::optional<Movability> movability{};
    std::optional<bool> boolean{};
    std::optional<std::string> text{};
    std::optional<std::vector<std::int64_t>> list{};
  };

  static Distinct read_distinct(const nlohmann::json& json) {
    Distinct value;
    if (json.is_boolean()) value.boolean = json.get<bool>();
    if (json.is_string()) {
      value.text = json.get<std::string>();
      const auto found = std::ranges::find(kMovabilities, *value.text);
      if (found != kMovabilities.end())
        value.movability = static_cast<Movability>(found - kMovabilities.begin());
    }
    const auto is_size = [](const nlohmann::json& size) { return size.is_number_unsigned(); };
    if (json.is_array() && std::ranges::all_of(json, is_size))
      value.list = json.get<std::vector<std::int64_t>>();
    return value;
  }

  /// Returns nullptr if the cell has another kind.
  template <typename Value>
  const Value* distinct_at(std::size_t row, std::size_t place, std::optional<Value> Distinct::*member) const {
    if (table_.is_integer(place)) return nullptr;
    const std::optional<Value>& value = distinct_[static_cast<std::size_t>(table_.value(row, place))].*member;
    return value ? &*value : nullptr;
  }

  /// Reads a layout. `places` are the columns of dtype, sizes and strides.
  bool read_layout(std::size_t row, const std::array<std::size_t, 3>& places, SharedLayout& layout) {
    const std::array key = {table_.value(row, places[0]), table_.value(row, places[1]),
                            table_.value(row, places[2])};
    if (const auto known = layouts_.find(key); known != layouts_.end()) {
      layout = known->second;
      return true;
    }
    const std::string* dtype = distinct_at(row, places[0], &Distinct::text);
    const auto* sizes = distinct_at(row, places[1], &Distinct::list);
    const auto* strides = distinct_at(row, places[2], &Distinct::list);
    if (dtype == nullptr || sizes == nullptr || strides == nullptr) return false;
    layout = layouts_.emplace(key, TensorLayout{*dtype, *sizes, *strides}).first->second;
    return true;
  }

  const CompactTable& table_;
  const ColumnPlaces& places_;
  std::vector<Distinct> distinct_;
  std::map<std::array<std::int64_t, 3>, SharedLayout> layouts_;  ///< layouts by the cells that describe them
};

}  // namespace

void append_saved_tensors(std::string& out, const std::vector<SavedTensor>& saved) {
  append(out, "\"saved\": {{\"columns\": [\"{}\"], \"rows\": [", fmt::join(kColumns, "\", \""));
  const char* separator = "";
  for (const SavedTensor& tensor : saved) {
    out += separator;
    append_saved_row(out, tensor);
    separator = ",";
  }
  out += "]}";
}

std::vector<SavedTensor> saved_tensors_from_json(const JsonValue& json) {
  const ColumnPlaces places = read_columns(json.at("columns"));
  const JsonValue rows = json.at("rows");
  std::optional<SavedTable> table;
  if (const CompactTable* packed = rows.compact_table()) table.emplace(*packed, places);
  if (table && !table->has_all_columns()) table.reset();
  std::vector<SavedTensor> saved(rows.size());
  // For a faulty row, read_saved_row reports the error.
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (!table || !table->read(i, saved[i])) saved[i] = read_saved_row(rows.element(i), places);
  }
  rows.release();
  return saved;
}

}  // namespace offprof
