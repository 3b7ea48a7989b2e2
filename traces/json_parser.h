#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "traces/byte_source.h"

namespace offprof {

/// Told what stands in a JSON text, in its order.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual void null() = 0;
  virtual void boolean(bool value) = 0;
  /// A whole number below zero, or `-0`.
  virtual void negative(std::int64_t value) = 0;
  /// A whole number from zero on.
  virtual void natural(std::uint64_t value) = 0;
  /// Any other number: one with a fraction or an exponent, or beyond 64 bits.
  virtual void real(double value) = 0;
  /// `text` lives as long as the call. It is printable, as are names: see parse_json.
  virtual void string(std::string_view text) = 0;
  virtual void begin_object() = 0;
  virtual void key(std::string_view name) = 0;
  virtual void end_object() = 0;
  virtual void begin_array() = 0;
  virtual void end_array() = 0;
};

/// Reads a whole JSON text (RFC 8259, UTF-8) in pieces, so that it never stands in memory as a whole. `name`
/// stands for the text in errors. What a file says of names goes into tables, errors and other files; so its
/// strings, and the names of members, come as printable() makes them (printable.h): no one of them has a line
/// break or an escape sequence in it. Throws Error (input) for what is no JSON, with line and column, for a
/// text that is empty or ends in the middle, and for one that nests deeper than 200 levels or is longer than
/// kMostTextBytes.
void parse_json(ByteSource& source, JsonHandler& handler, const std::string& name);

}  // namespace offprof
