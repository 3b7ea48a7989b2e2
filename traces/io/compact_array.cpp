#include "traces/io/compact_array.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace offprof {
namespace {

using Kind = RowToken::Kind;

template <typename Integer>
bool fits_in(std::int64_t value) {
  return value >= std::numeric_limits<Integer>::min() && value <= std::numeric_limits<Integer>::max();
}

std::size_t width_for(std::int64_t value) {
  return fits_in<std::int8_t>(value)    ? 1
         : fits_in<std::int16_t>(value) ? 2
         : fits_in<std::int32_t>(value) ? 4
                                        : 8;
}

template <typename Integer>
std::int64_t read_as(const unsigned char* bytes) {
  Integer value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace

nlohmann::json integer_json(std::int64_t value) {
  return value < 0 ? nlohmann::json(value) : nlohmann::json(static_cast<std::uint64_t>(value));
}

void CompactIntegers::push_back(std::int64_t value) {
  if (value < low_ || value > high_) widen(width_for(value));
  if ((size_ + 1) * width_ + sizeof value > capacity_) grow();
  // On the little-endian machines that offprof runs on, the low bytes come first. The next value overwrites
  // the others.
  std::memcpy(bytes_.get() + size_++ * width_, &value, sizeof value);
}

std::int64_t CompactIntegers::operator[](std::size_t index) const {
  const unsigned char* bytes = bytes_.get() + index * width_;
  switch (width_) {
    case 1:
      return read_as<std::int8_t>(bytes);
    case 2:
      return read_as<std::int16_t>(bytes);
    case 4:
      return read_as<std::int32_t>(bytes);
    default:
      return read_as<std::int64_t>(bytes);
  }
}

void CompactIntegers::widen(std::size_t width) {
  CompactIntegers wide;
  wide.width_ = width;
  wide.high_ = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * width);
  wide.low_ = -wide.high_ - 1;
  for (std::size_t i = 0; i < size(); ++i) wide.push_back((*this)[i]);
  *this = std::move(wide);
}

void CompactIntegers::grow() {
  constexpr std::size_t kFirst = 64;
  const std::size_t capacity = std::max(2 * capacity_, kFirst);
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc)
  auto* const bytes = static_cast<unsigned char*>(std::realloc(bytes_.get(), capacity));
  if (bytes == nullptr) throw std::bad_alloc();
  static_cast<void>(bytes_.release());  // realloc owns it now
  bytes_.reset(bytes);
  capacity_ = capacity;
}

bool CompactTable::add_row(const std::vector<RowToken>& cells) {
  if (!read_cells(cells) || !fits()) return false;
  if (columns_.empty())
    for (const Cell& cell : cells_) columns_.push_back({cell.kind, {}});
  for (std::size_t i = 0; i < cells_.size(); ++i) columns_[i].values.push_back(cells_[i].value);
  return true;
}

void CompactTable::close() {
  numbers_ = {};
}

/// Builds `cells_` from the tokens of a row. Returns false if a table cannot hold one of the cells.
bool CompactTable::read_cells(const std::vector<RowToken>& tokens) {
  cells_.clear();
  const RowToken* const end = tokens.data() + tokens.size();
  for (const RowToken* token = tokens.data(); token != end; ++token) {
    if (token->kind == Kind::kInteger) {
      cells_.push_back({CellKind::kInteger, token->value});
    } else if (token->kind == Kind::kBeginList) {
      const RowToken* const first = ++token;
      while (token->kind == Kind::kInteger) ++token;
      if (token->kind != Kind::kEndList) return false;
      cells_.push_back({CellKind::kDistinct, number_of_list(first, token)});
    } else {
      cells_.push_back({CellKind::kDistinct, token->value});
    }
  }
  return true;
}

bool CompactTable::fits() const {
  if (columns_.empty()) return !cells_.empty();
  if (cells_.size() != columns_.size()) return false;
  for (std::size_t i = 0; i < cells_.size(); ++i)
    if (cells_[i].kind != columns_[i].kind) return false;
  return true;
}

std::int64_t CompactTable::number_of_list(const RowToken* first, const RowToken* last) {
  list_.clear();
  for (const RowToken* token = first; token != last; ++token)
    list_.append(reinterpret_cast<const char*>(&token->value), sizeof token->value);
  return number_of('[', list_, [&] {
    auto list = nlohmann::json::array();
    for (const RowToken* token = first; token != last; ++token) list.push_back(integer_json(token->value));
    return list;
  });
}

nlohmann::json CompactTable::row(std::size_t index) const {
  auto cells = nlohmann::json::array();
  for (const Column& column : columns_) {
    const std::int64_t value = column.values[index];
    cells.push_back(column.kind == CellKind::kInteger ? integer_json(value)
                                                      : distinct_[static_cast<std::size_t>(value)]);
  }
  return cells;
}

}  // namespace offprof
