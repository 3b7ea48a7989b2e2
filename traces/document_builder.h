#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/json_document.h"
#include "traces/json_parser.h"

namespace offprof {

/// The top-level member that documents leave out.
inline constexpr std::string_view kSkippedKey = "traceEvents";

/// Builds a tree of values from a parser's events. Throws Error (input) where there are too many of them:
/// what takes most of a trace is packed, and no tree.
class TreeBuilder {
 public:
  /// `name` stands for the document in errors.
  explicit TreeBuilder(std::string name) : name_(std::move(name)) {}

  nlohmann::json take() { return std::move(root_); }
  void put(nlohmann::json value) { *place() = std::move(value); }
  void key(std::string_view name) { member_ = &(*open_.back())[std::string(name)]; }
  /// Whether the object at hand has that member already.
  bool has(std::string_view name) const { return open_.back()->contains(name); }
  void open(nlohmann::json::value_t type);
  void close() { open_.pop_back(); }
  /// How many arrays and objects are open.
  std::size_t depth() const { return open_.size(); }

 private:
  static constexpr std::size_t kMostValues = 10'000'000;

  nlohmann::json* place();

  std::string name_;
  nlohmann::json root_;
  std::size_t values_ = 0;
  /// A parent gets no second child while one is open, so they stay where they are.
  std::vector<nlohmann::json*> open_;
  nlohmann::json* member_ = nullptr;  ///< of the innermost object
};

/// Builds a document; packs arrays of the top-level members that are named, and skips kSkippedKey.
///
/// An array is packed while it looks like one that can be. Where it turns out to be another, what was packed
/// of it goes into the tree, and so does the rest.
class DocumentBuilder : public JsonHandler {
 public:
  /// `name` stands for the document in errors.
  DocumentBuilder(std::vector<std::string_view> packed_members, std::string name)
      : tree_(std::move(name)), packed_members_(std::move(packed_members)) {}

  JsonDocument take() { return {tree_.take(), std::move(packed_)}; }

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
  /// The rows that offprof writes have some thirty tokens; one that goes on and on belongs to something else.
  static constexpr std::size_t kMostTokensOfARow = 1000;

  /// What becomes of the values that come.
  enum class State : std::uint8_t {
    kTree,      ///< they go into the tree
    kNewArray,  ///< an array was opened that may be packed
    kIntegers,  ///< it is packed and has whole numbers
    kTable,     ///< it is packed and has rows
    kRow,       ///< within such a row
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
  void unpack_row(const PackedTable& table);
  /// Whether the value that begins here is within the skipped one, or is it.
  bool skip_value() { return skipped_ > 0 || std::exchange(skip_next_, false); }

  TreeBuilder tree_;
  std::vector<std::string_view> packed_members_;
  std::vector<PackedArray> packed_;
  State state_ = State::kTree;
  PackedArray array_;          ///< the one at hand
  std::vector<RowToken> row_;  ///< the one at hand
  int row_depth_ = 0;
  bool packs_ = false;      ///< within a member whose arrays are packed
  bool skip_next_ = false;  ///< the key before was the skipped one
  int skipped_ = 0;         ///< open arrays and objects within the skipped value
};

}  // namespace offprof
