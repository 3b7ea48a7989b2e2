#include "traces/io/document_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

using Kind = RowToken::Kind;

}  // namespace

void TreeBuilder::open(nlohmann::json::value_t type) {
  nlohmann::json* value = place();
  *value = nlohmann::json(type);
  open_.push_back(value);
}

/// Returns the place of the next value.
nlohmann::json* TreeBuilder::place() {
  if (++values_ > kMostValues)
    throw input_error(fmt::format("'{}' has more values than an offprof file can have", name_));
  if (open_.empty()) return &root_;
  nlohmann::json& parent = *open_.back();
  if (parent.is_object()) return member_;
  parent.get_ref<nlohmann::json::array_t&>().emplace_back();
  return &parent.get_ref<nlohmann::json::array_t&>().back();
}

void DocumentBuilder::null() {
  scalar('0', {}, [] { return nullptr; });
}

void DocumentBuilder::boolean(bool value) {
  scalar(value ? 't' : 'f', {}, [&] { return value; });
}

void DocumentBuilder::real(double value) {
  scalar('.', {reinterpret_cast<const char*>(&value), sizeof value}, [&] { return value; });
}

void DocumentBuilder::string(std::string_view text) {
  scalar('"', text, [&] { return text; });
}

void DocumentBuilder::natural(std::uint64_t value) {
  if (value <= std::uint64_t{std::numeric_limits<std::int64_t>::max()})
    return integer(static_cast<std::int64_t>(value));
  scalar('+', {reinterpret_cast<const char*>(&value), sizeof value}, [&] { return value; });
}

/// Adds a scalar that is not a signed 64-bit whole number. `kind` and `bytes` identify it.
template <typename Make>
void DocumentBuilder::scalar(char kind, std::string_view bytes, const Make& make) {
  if (skip_value()) return;
  if (state_ == State::kRow) return add_to_row({Kind::kDistinct, array_.table.number_of(kind, bytes, make)});
  unpack();
  tree_.put(make());
}

void DocumentBuilder::integer(std::int64_t value) {
  if (skip_value()) return;
  if (state_ == State::kRow) return add_to_row({Kind::kInteger, value});
  if (state_ == State::kNewArray) state_ = State::kIntegers;
  if (state_ == State::kIntegers) return array_.integers.push_back(value);
  unpack();
  tree_.put(integer_json(value));
}

void DocumentBuilder::begin_object() {
  if (skipped_ > 0 || skip_value()) {
    ++skipped_;
    return;
  }
  unpack();
  tree_.open(nlohmann::json::value_t::object);
}

void DocumentBuilder::key(std::string_view name) {
  if (skipped_ > 0) return;
  tree_.key(name);
  if (tree_.depth() > 1) return;
  packs_ = std::ranges::find(compact_members_, name) != compact_members_.end();
  skip_next_ = name == kSkippedKey;
  if (!skip_next_) return;
  tree_.put(nlohmann::json::array());
}

void DocumentBuilder::end_object() {
  if (skipped_ > 0) {
    --skipped_;
  } else {
    tree_.close();
  }
}

void DocumentBuilder::begin_array() {
  if (skipped_ > 0 || skip_value()) {
    ++skipped_;
  } else if (state_ == State::kRow) {
    ++row_depth_;
    add_to_row({Kind::kBeginList});
  } else if (state_ == State::kNewArray || state_ == State::kTable) {
    state_ = State::kRow;
    row_depth_ = 1;
  } else {
    unpack();
    if (packs_) {
      state_ = State::kNewArray;
    } else {
      tree_.open(nlohmann::json::value_t::array);
    }
  }
}

void DocumentBuilder::end_array() {
  if (skipped_ > 0) {
    --skipped_;
  } else if (state_ == State::kRow && --row_depth_ > 0) {
    add_to_row({Kind::kEndList});
  } else if (state_ == State::kRow) {
    end_row();
  } else if (state_ == State::kTree) {
    tree_.close();
  } else {
    put_packed();
  }
}

void DocumentBuilder::end_row() {
  if (!array_.table.add_row(row_)) {
    unpack();
    return tree_.close();
  }
  row_.clear();
  state_ = State::kTable;
}

void DocumentBuilder::put_packed() {
  array_.is_table = state_ == State::kTable;
  array_.table.close();
  tree_.put(nlohmann::json::binary({}, compact_.size()));
  compact_.push_back(std::exchange(array_, {}));
  state_ = State::kTree;
}

/// Moves the packed part of the current array into the tree and leaves the array open there.
void DocumentBuilder::unpack() {
  const State state = std::exchange(state_, State::kTree);
  if (state == State::kTree) return;
  const CompactArray array = std::exchange(array_, {});
  tree_.open(nlohmann::json::value_t::array);
  for (std::size_t i = 0; i < array.integers.size(); ++i) tree_.put(integer_json(array.integers[i]));
  for (std::size_t i = 0; i < array.table.rows(); ++i) tree_.put(array.table.row(i));
  if (state == State::kRow) unpack_row(array.table);
}

/// Moves the current row into the tree, with the lists that are open in it.
void DocumentBuilder::unpack_row(const CompactTable& table) {
  tree_.open(nlohmann::json::value_t::array);
  for (const RowToken& token : row_) {
    if (token.kind == Kind::kBeginList) {
      tree_.open(nlohmann::json::value_t::array);
    } else if (token.kind == Kind::kEndList) {
      tree_.close();
    } else if (token.kind == Kind::kInteger) {
      tree_.put(integer_json(token.value));
    } else {
      tree_.put(table.distinct().at(static_cast<std::size_t>(token.value)));
    }
  }
  row_.clear();
}

}  // namespace offprof
