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

/// Returns the JSON value that nlohmann's parser makes of a whole number: unsigned if it is not negative.
nlohmann::json integer_json(std::int64_t value);

/// List of whole numbers that stores each in as many bytes (1, 2, 4 or 8) as the largest needs. It grows in
/// place if the system can, so that a long list is not copied.
class CompactIntegers {
 public:
  void push_back(std::int64_t value);
  std::int64_t operator[](std::size_t index) const;
  std::size_t size() const { return size_; }

  /// Calls `take` with the index and the value of each number.
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
    // The memory comes from realloc, which, unlike a vector, can grow without a copy.
    void operator()(unsigned char* bytes) const { std::free(bytes); }  // NOLINT(cppcoreguidelines-no-malloc)
  };

  void widen(std::size_t width);
  void grow();

  std::unique_ptr<unsigned char, Free> bytes_;
  std::size_t capacity_ = 0;  ///< in bytes
  std::size_t size_ = 0;
  std::size_t width_ = 1;
  std::int64_t low_ = std::numeric_limits<std::int8_t>::min();  ///< range of values that fit the width
  std::int64_t high_ = std::numeric_limits<std::int8_t>::max();
};

/// Part of a row of a CompactTable.
struct RowToken {
  enum class Kind : std::uint8_t { kInteger, kDistinct, kBeginList, kEndList };
  Kind kind = Kind::kInteger;
  std::int64_t value = 0;  ///< whole number, or index in CompactTable::distinct
};

/// Table of rows with the same number of cells, stored by column. A cell is a whole number, another scalar,
/// or a list of whole numbers. Scalars and lists repeat, so each distinct one is stored once.
class CompactTable {
 public:
  /// Returns the index in distinct() of a scalar that is not a whole number. `kind` and `bytes` identify it;
  /// `make` creates the value if it is new.
  template <typename Make>
  std::int64_t number_of(char kind, std::string_view bytes, const Make& make) {
    key_.assign(1, kind);
    key_ += bytes;
    const auto [entry, is_new] = numbers_.try_emplace(key_, static_cast<std::int64_t>(distinct_.size()));
    if (is_new) distinct_.emplace_back(make());
    return entry->second;
  }

  /// Adds a row with the cells that the tokens describe. Returns false if the row has no cells or does not
  /// match the rows before it: another number of cells, a number in a column of texts, or a list of anything
  /// but whole numbers.
  bool add_row(const std::vector<RowToken>& cells);
  /// Ends the table; no row may follow.
  void close();

  std::size_t rows() const { return columns_.empty() ? 0 : columns_[0].values.size(); }
  std::size_t columns() const { return columns_.size(); }
  /// Returns true if the column's cells are whole numbers; otherwise they are indices in distinct().
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
    CompactIntegers values;
  };

  bool read_cells(const std::vector<RowToken>& tokens);
  bool fits() const;
  std::int64_t number_of_list(const RowToken* first, const RowToken* last);

  std::vector<Column> columns_;
  std::vector<nlohmann::json> distinct_;
  std::unordered_map<std::string, std::int64_t> numbers_;  ///< indices in distinct_, by kind and bytes
  std::string key_;                                        ///< key of the current value
  std::string list_;                                       ///< bytes of the current list
  std::vector<Cell> cells_;                                ///< cells of the current row
};

/// Long array of whole numbers or of rows in a JSON document. It takes a few bytes per element; a tree of
/// values would take ten times the size of the text.
struct CompactArray {
  CompactIntegers integers;
  CompactTable table;
  bool is_table = false;

  std::size_t size() const { return is_table ? table.rows() : integers.size(); }
  nlohmann::json element(std::size_t index) const {
    return is_table ? table.row(index) : integer_json(integers[index]);
  }
};

}  // namespace offprof
