#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace offprof {

/// Stream of bytes of any length, read from start to end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `room` from its start and returns the number of bytes written. Fewer bytes than fit into `room`
  /// mean that the source has ended.
  virtual std::size_t read(std::span<char> room) = 0;
};

/// Bytes of a text, which must outlive the source.
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
