#include "engine/devices/virtual_gpu/model/json_lines.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <vector>

#include "traces/base/error.h"

namespace offprof {
namespace {

using Json = nlohmann::json;

/// Iterates over a text's characters and counts the line ends that the parser has read. The parser reads a
/// key only up to its closing quote before it reports the key, so the count is then the line of that key.
class CountingIterator {
 public:
  // NOLINTBEGIN(readability-identifier-naming): the standard library's names
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  CountingIterator(const char* at, int& line) : at_(at), line_(&line) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *line_ += *at_ == '\n' ? 1 : 0;
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    const CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  int* line_;
};

/// Receives the parser events of nlohmann's SAX interface and keeps only the keys.
class KeyLines {
 public:
  KeyLines(const int& line, const std::string& name) : line_(line), name_(name) {}

  std::map<std::string, int> take() { return std::move(lines_); }

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(Json::number_integer_t) { return true; }
  bool number_unsigned(Json::number_unsigned_t) { return true; }
  bool number_float(Json::number_float_t, const std::string&) { return true; }
  bool string(std::string&) { return true; }
  bool binary(Json::binary_t&) { return true; }

  bool start_object(std::size_t) {
    prefixes_.push_back(prefixes_.empty() ? "" : path_ + ".");
    return true;
  }
  bool end_object() {
    prefixes_.pop_back();
    return true;
  }
  bool start_array(std::size_t) {
    ++arrays_;
    return true;
  }
  bool end_array() {
    --arrays_;
    return true;
  }

  bool key(std::string& name) {
    if (arrays_ > 0) return true;
    path_ = prefixes_.back() + name;
    if (lines_.emplace(path_, line_).second) return true;
    throw input_error(fmt::format("'{}': line {}: '{}' occurs twice, first on line {}", name_, line_, path_,
                                  lines_[path_]));
  }

  bool parse_error(std::size_t, const std::string&, const Json::exception& error) {
    throw input_error(fmt::format("'{}' is not JSON: line {}: {}", name_, line_, error.what()));
  }

 private:
  const int& line_;
  const std::string& name_;
  std::map<std::string, int> lines_;
  std::vector<std::string> prefixes_;  ///< path of the keys in each open object
  std::string path_;                   ///< path of the latest key
  int arrays_ = 0;                     ///< number of open arrays
};

}  // namespace

std::map<std::string, int> lines_of_keys(const std::string& text, const std::string& name) {
  int line = 1;
  KeyLines keys(line, name);
  Json::sax_parse(CountingIterator(text.data(), line), CountingIterator(text.data() + text.size(), line),
                  &keys);
  return keys.take();
}

}  // namespace offprof
