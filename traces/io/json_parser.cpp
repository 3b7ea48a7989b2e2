#include "traces/io/json_parser.h"

#include <fmt/format.h>
#include <rapidjson/error/en.h>

#include <cmath>
#include <memory>

#include "traces/base/error.h"
#include "traces/base/printable.h"
#include "traces/io/file.h"
#include "traces/io/rapidjson_reader.h"

namespace offprof {
namespace {

/// Nesting limit. A trace has fewer than ten levels; hostile files must not exhaust memory.
constexpr int kMaxDepth = 200;
constexpr std::size_t kPiece = 1 << 16;

/// Counts line breaks with memchr, which is faster than a loop over the bytes if lines are long.
std::int64_t count_lines(std::string_view text) {
  std::int64_t lines = 0;
  for (auto at = text.find('\n'); at != std::string_view::npos; at = text.find('\n', at + 1)) ++lines;
  return lines;
}

/// Current piece of a source, followed by a zero byte. It counts lines when it moves to the next piece.
class Piece {
 public:
  Piece(ByteSource& source, const std::string& name) : source_(source), name_(name) { next(); }

  const char* begin() const { return bytes_.get(); }
  const char* end() const { return bytes_.get() + size_; }
  /// Returns the number of bytes before this piece.
  std::size_t offset() const { return offset_; }

  void next() {
    const std::string_view old(begin(), size_);
    lines_ += count_lines(old);
    if (const auto newline = old.rfind('\n'); newline != std::string_view::npos)
      line_begin_ = offset_ + newline + 1;
    offset_ += size_;
    if (offset_ > kMostTextBytes)
      throw input_error(fmt::format("'{}' is too long for an offprof file", name_));
    size_ = source_.read({bytes_.get(), kPiece});
    bytes_[size_] = '\0';
  }

  /// Returns the position of a byte of this piece, or of a few bytes before it on the same line.
  std::string line_and_column(std::size_t position) const {
    const std::string_view text(begin(), position > offset_ ? position - offset_ : 0);
    const auto line = lines_ + count_lines(text);
    const auto newline = text.rfind('\n');
    const std::size_t line_begin = newline == std::string_view::npos ? line_begin_ : offset_ + newline + 1;
    return fmt::format("line {}, column {}", line, position - line_begin + 1);
  }

 private:
  ByteSource& source_;
  const std::string& name_;
  /// Not zeroed: that would take longer than reading a short text.
  std::unique_ptr<char[]> bytes_ = std::make_unique_for_overwrite<char[]>(kPiece + 1);
  std::size_t size_ = 0;
  std::size_t offset_ = 0;
  std::int64_t lines_ = 1;      ///< number of the line in which this piece begins
  std::size_t line_begin_ = 0;  ///< offset of that line
};

/// Adapts pieces to the input concept `Stream` of RapidJSON's reader. It is small, so that the reader can
/// keep a copy in registers.
class InputStream {
 public:
  using Ch = char;  // NOLINT(readability-identifier-naming): the concept's name

  explicit InputStream(Piece& piece) : piece_(&piece), at_(piece.begin()), end_(piece.end()) {
    if (std::string_view(at_, end_).starts_with("\xef\xbb\xbf")) at_ += 3;  // the byte order mark of UTF-8
  }

  // NOLINTBEGIN(readability-identifier-naming)
  /// Returns the next character; '\0' at the end.
  Ch Peek() const { return *at_; }
  Ch Take() {
    const Ch taken = *at_;
    if (++at_ >= end_) [[unlikely]]
      *this = after_end();
    return taken;
  }
  std::size_t Tell() const { return piece_->offset() + static_cast<std::size_t>(at_ - piece_->begin()); }
  // The reader calls these only to parse in place, which we do not do.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  std::size_t PutEnd(Ch*) { return 0; }
  // NOLINTEND(readability-identifier-naming)

  bool at_end() const { return at_ == end_; }

 private:
  InputStream(Piece* piece, const char* at, const char* end) : piece_(piece), at_(at), end_(end) {}

  /// Returns the stream for an `at_` at the end of a piece or beyond the end of the last piece. It is
  /// returned by value, so that the stream itself can stay in registers.
  [[gnu::noinline]] static InputStream after(Piece* piece, const char* at, const char* end) {
    if (at > end) return {piece, end, end};
    piece->next();
    return {piece, piece->begin(), piece->end()};
  }
  InputStream after_end() const { return after(piece_, at_, end_); }

  Piece* piece_;
  const char* at_;
  const char* end_;
};

/// Translates RapidJSON's events to those of JsonHandler.
class Adapter {
 public:
  Adapter(JsonHandler& handler, const std::string& name) : handler_(handler), name_(name) {}

  // NOLINTBEGIN(readability-identifier-naming): RapidJSON's concept `Handler`
  bool Null() { return handler_.null(), true; }
  bool Bool(bool value) { return handler_.boolean(value), true; }
  bool Int(int value) { return handler_.negative(value), true; }
  bool Uint(unsigned value) { return handler_.natural(value), true; }
  bool Int64(std::int64_t value) { return handler_.negative(value), true; }
  bool Uint64(std::uint64_t value) { return handler_.natural(value), true; }
  bool Double(double value) {
    if (!std::isfinite(value)) throw input_error(fmt::format("'{}' has a number that is too large", name_));
    return handler_.real(value), true;
  }
  bool RawNumber(const char*, rapidjson::SizeType, bool) { return false; }  // not requested
  bool String(const char* text, rapidjson::SizeType length, bool) {
    return handler_.string(printable_view({text, length})), true;
  }
  bool Key(const char* text, rapidjson::SizeType length, bool) {
    return handler_.key(printable_view({text, length})), true;
  }
  bool StartObject() { return enter(), handler_.begin_object(), true; }
  bool EndObject(rapidjson::SizeType) { return --depth_, handler_.end_object(), true; }
  bool StartArray() { return enter(), handler_.begin_array(), true; }
  bool EndArray(rapidjson::SizeType) { return --depth_, handler_.end_array(), true; }
  // NOLINTEND(readability-identifier-naming)

 private:
  void enter() {
    if (++depth_ > kMaxDepth) throw input_error(fmt::format("'{}' is nested too deeply", name_));
  }

  /// Returns the text itself if it is printable, which is by far the most common case.
  std::string_view printable_view(std::string_view text) {
    if (is_printable(text)) return text;
    return printable_ = printable(text);
  }

  JsonHandler& handler_;
  const std::string& name_;
  int depth_ = 0;
  std::string printable_;
};

[[noreturn]] void throw_syntax_error(const InputStream& stream, const Piece& piece,
                                     const rapidjson::ParseResult& result, const std::string& name) {
  if (result.Code() == rapidjson::kParseErrorDocumentEmpty && stream.at_end())
    throw input_error(fmt::format("'{}' is empty", name));
  if (stream.at_end()) {
    throw input_error(fmt::format("'{}' is truncated: it ends after {} bytes", name, stream.Tell()),
                      "Copy or record it again.");
  }
  throw input_error(fmt::format("'{}' is not JSON: {}: {}", name, piece.line_and_column(result.Offset()),
                                rapidjson::GetParseError_En(result.Code())));
}

}  // namespace
}  // namespace offprof

/// Makes the reader work on a copy of the stream.
template <>
struct rapidjson::StreamTraits<offprof::InputStream> {
  enum { copyOptimization = 1 };  // NOLINT(readability-identifier-naming): the concept's name
};

/// Skips white space. Most tokens have none before them.
template <>
inline void rapidjson::SkipWhitespace(offprof::InputStream& is) {
  for (char c = is.Peek(); c <= ' ' && (c == ' ' || c == '\n' || c == '\r' || c == '\t'); c = is.Peek())
    is.Take();
}

namespace offprof {

void parse_json(ByteSource& source, JsonHandler& handler, const std::string& name) {
  constexpr unsigned kFlags = rapidjson::kParseValidateEncodingFlag | rapidjson::kParseFullPrecisionFlag;
  Piece piece(source, name);
  InputStream stream(piece);
  Adapter adapter(handler, name);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, adapter);
  if (result.IsError()) throw_syntax_error(stream, piece, result, name);
  if (!stream.at_end()) {  // the reader treats a zero byte as the end
    throw input_error(
        fmt::format("'{}' is not JSON: {}: a zero byte", name, piece.line_and_column(stream.Tell())));
  }
}

}  // namespace offprof
