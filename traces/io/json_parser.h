#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/io/byte_source.h"

namespace offprof {

/// Receives the elements of a JSON text in their order.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  /// A whole number below zero, or `-0`.
  virtual void negative(std::int64_t value) = 0;
  /// A whole number that is not negative.
  virtual void natural(std::uint64_t value) = 0;
  /// Any other number: one with a fraction or an exponent, or beyond 64 bits.
  virtual void real(double value) = 0;
  /// `text` is valid during the call only. It is printable, like the names of members: see parse_json.
  virtual void string(std::string_view text) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
};

/// Parses a JSON text (RFC 8259, UTF-8) in pieces, so that the whole text is never in memory. `name` is the
/// name of the text in errors.
///
/// Strings and member names are passed on as printable() returns them (printable.h), without line breaks and
/// escape sequences, because names from a file end up in tables, errors and other files.
///
/// Throws Error (input) if the text is not JSON, with line and column, if it is empty or ends early, if it
/// nests deeper than 200 levels, or if it is longer than kMostTextBytes.
void parse_json(ByteSource& source, JsonHandler& handler, const std::string& name);

}  // namespace offprof
