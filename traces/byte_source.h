#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace offprof {

/// Bytes that come one after the other, however many there are.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `room` from its beginning and says how much of it; less than all of it only at the end.
  virtual std::size_t read(std::span<char> room) = 0;
};

/// Those of a text, which must outlive it.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  std::size_t read(std::span<char> room) override {
    const std::size_t size = text_.copy(room.data(), room.size());
    text_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view text_;
};

}  // namespace offprof
