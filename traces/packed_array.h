#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace offprof {

/// A whole number as the parser of nlohmann makes it: unsigned from zero on.
nlohmann::json integer_json(std::int64_t value);

/// Whole numbers in as many bytes each (1, 2, 4 or 8) as the largest needs. It grows in place where the
/// system can, so that there is never a second copy of a long list.
class PackedIntegers {
 public:
  void push_back(std::int64_t value);
  std::int64_t operator[](std::size_t index) const;
  std::size_t size() const { return size_; }

  /// Calls `take` with the index of each number, and the number.
  template <typename Take>
  void each(const Take& take) const {
    switch (width_) {
      case 1:
        return each_as<std::int8_t>(take);
      case 2:
        return each_as<std::int16_t>(take);
      case 4:
        return each_as<std::int32_t>(take);
      default:
        return each_as<std::int64_t>(take);
    }
  }

 private:
  template <typename Integer, typename Take>
  void each_as(const Take& take) const {
    for (std::size_t i = 0; i < size_; ++i) {
      Integer value;
      std::memcpy(&value, bytes_.get() + i * sizeof value, sizeof value);
      take(i, std::int64_t{value});
    }
  }

  struct Free {
    // realloc, unlike a vector, can grow without a copy
    void operator()(unsigned char* bytes) const { std::free(bytes); }  // NOLINT(cppcoreguidelines-no-malloc)
  };

  void widen(std::size_t width);
  void grow();

  std::unique_ptr<unsigned char, Free> bytes_;
  std::size_t capacity_ = 0;  ///< in bytes
  std::size_t size_ = 0;
  std::size_t width_ = 1;
  std::int64_t low_ = std::numeric_limits<std::int8_t>::min();  ///< what fits
  std::int64_t high_ = std::numeric_limits<std::int8_t>::max();
};

/// A piece of a row of a PackedTable.
struct RowToken {
  enum class Kind : std::uint8_t { kInteger, kDistinct, kBeginList, kEndList };
  Kind kind = Kind::kInteger;
  std::int64_t value = 0;  ///< a whole number, or an index in PackedTable::distinct
};

/// Rows of equally many cells, by column. A cell is a whole number, or any other scalar or a list of whole
/// numbers: these repeat, so each distinct one is kept once.
class PackedTable {
 public:
  /// The index in distinct() of the scalar that is no whole number, of this kind and these bytes; `make`
  /// makes it where it is new.
  template <typename Make>
  std::int64_t number_of(char kind, std::string_view bytes, const Make& make) {
    key_.assign(1, kind);
    key_ += bytes;
    const auto [entry, is_new] = numbers_.try_emplace(key_, static_cast<std::int64_t>(distinct_.size()));
    if (is_new) distinct_.emplace_back(make());
    return entry->second;
  }

  /// Adds the row whose cells these tokens are. False where it does not fit the rows before: another number
  /// of cells, a number where others have a text, a list of anything but whole numbers; or where it has no
  /// cells.
  bool add_row(const std::vector<RowToken>& cells);
  /// No row will come any more.
  void close();

  std::size_t rows() const { return columns_.empty() ? 0 : columns_[0].values.size(); }
  std::size_t columns() const { return columns_.size(); }
  /// Whether the column's cells are whole numbers; else they are indices in distinct().
  bool is_integer(std::size_t column) const { return columns_[column].kind == CellKind::kInteger; }
  std::int64_t value(std::size_t row, std::size_t column) const { return columns_[column].values[row]; }
  const std::vector<nlohmann::json>& distinct() const { return distinct_; }
  nlohmann::json row(std::size_t index) const;

 private:
  enum class CellKind : std::uint8_t { kInteger, kDistinct };
  struct Cell {
    CellKind kind;
    std::int64_t value;
  };
  struct Column {
    CellKind kind;
    PackedIntegers values;
  };

  bool read_cells(const std::vector<RowToken>& tokens);
  bool fits() const;
  std::int64_t number_of_list(const RowToken* first, const RowToken* last);

  std::vector<Column> columns_;
  std::vector<nlohmann::json> distinct_;
  std::unordered_map<std::string, std::int64_t> numbers_;  ///< by kind and bytes of the value
  std::string key_;                                        ///< of the value at hand
  std::string list_;                                       ///< the bytes of the list at hand
  std::vector<Cell> cells_;                                ///< of the row at hand
};

/// A long array of a JSON document, of whole numbers or of rows, in a few bytes for each: as a tree of values
/// it would take ten times its text.
struct PackedArray {
  PackedIntegers integers;
  PackedTable table;
  bool is_table = false;

  std::size_t size() const { return is_table ? table.rows() : integers.size(); }
  nlohmann::json element(std::size_t index) const {
    return is_table ? table.row(index) : integer_json(integers[index]);
  }
};

}  // namespace offprof
