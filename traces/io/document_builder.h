#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/io/json_document.h"
#include "traces/io/json_parser.h"

namespace offprof {

/// Top-level member that is left out of documents.
inline constexpr std::string_view kSkippedKey = "traceEvents";

/// Builds a tree of values from the events of a parser. Throws Error (input) if there are too many values:
/// the large parts of a trace are packed and never enter the tree.
class TreeBuilder {
 public:
  /// `name` is the document's name in errors.
  explicit TreeBuilder(std::string name) : name_(std::move(name)) {}

  nlohmann::json take() { return std::move(root_); }
  void put(nlohmann::json value) { *place() = std::move(value); }
  void key(std::string_view name) { member_ = &(*open_.back())[std::string(name)]; }
  /// Returns true if the innermost open object already has a member `name`.
  bool has(std::string_view name) const { return open_.back()->contains(name); }
  void open(nlohmann::json::value_t type);
  void close() { open_.pop_back(); }
  /// Number of open arrays and objects.
  std::size_t depth() const { return open_.size(); }

 private:
  static constexpr std::size_t kMostValues = 10'000'000;

  nlohmann::json* place();

  std::string name_;
  nlohmann::json root_;
  std::size_t values_ = 0;
  /// The pointers stay valid because a parent gets no second child while one is open.
  std::vector<nlohmann::json*> open_;
  nlohmann::json* member_ = nullptr;  ///< current member of the innermost object
};

/// Builds a document. Packs the arrays in the named top-level members and skips kSkippedKey.
///
/// An array is packed as long as its elements allow it. If an element does not, the packed elements move into
/// the tree and the rest follows them there.
class DocumentBuilder : public JsonHandler {
 public:
  /// `name` is the document's name in errors.
  DocumentBuilder(std::vector<std::string_view> compact_members, std::string name)
      : tree_(std::move(name)), compact_members_(std::move(compact_members)) {}

  JsonDocument take() { return {tree_.take(), std::move(compact_)}; }

  void null() override;
  void boolean(bool value) override;
  void negative(std::int64_t value) override { integer(value); }
  void natural(std::uint64_t value) override;
  void real(double value) override;
  void string(std::string_view text) override;
  void begin_object() override;
  void key(std::string_view name) override;
  void end_object() override;
  void begin_array() override;
  void end_array() override;

 private:
  /// Rows that offprof writes have about thirty tokens. An endless row belongs to another kind of file.
  static constexpr std::size_t kMostTokensOfARow = 1000;

  /// Destination of the values that follow.
  enum class State : std::uint8_t {
    kTree,      ///< the tree
    kNewArray,  ///< an array that was just opened and may be packed
    kIntegers,  ///< a packed array of whole numbers
    kTable,     ///< a packed array of rows
    kRow,       ///< a row of such an array
  };

  void integer(std::int64_t value);
  template <typename Make>
  void scalar(char kind, std::string_view bytes, const Make& make);
  void add_to_row(RowToken token) {
    row_.push_back(token);
    if (row_.size() > kMostTokensOfARow) unpack();
  }
  void end_row();
  void put_packed();
  void unpack();
  void unpack_row(const CompactTable& table);
  /// Returns true if the value that begins here is the skipped value or lies in it.
  bool skip_value() { return skipped_ > 0 || std::exchange(skip_next_, false); }

  TreeBuilder tree_;
  std::vector<std::string_view> compact_members_;
  std::vector<CompactArray> compact_;
  State state_ = State::kTree;
  CompactArray array_;         ///< current array
  std::vector<RowToken> row_;  ///< current row
  int row_depth_ = 0;
  bool packs_ = false;      ///< inside a member whose arrays are packed
  bool skip_next_ = false;  ///< the last key was the skipped one
  int skipped_ = 0;         ///< number of open arrays and objects inside the skipped value
};

}  // namespace offprof
