#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "traces/base/units.h"

namespace offprof {

/// Bytes that can be read at any offset, by several threads at once. An interface, so that tests can count
/// reads.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// Returns the name for errors.
  virtual const std::string& name() const = 0;
  /// Returns the size in bytes at the time of opening.
  virtual Bytes size() const = 0;
  /// Fills `room` with the bytes from `offset` on. Returns the number of bytes read, which is less than
  /// `room` only at the end of the file. Throws Error (input) if the disk fails.
  virtual std::size_t read(Bytes offset, std::span<char> room) const = 0;
};

/// Consecutive bytes of a file.
struct FileRange {
  std::shared_ptr<const ReadableFile> file{};
  Bytes offset = 0;
  Bytes bytes = 0;
};

/// Opens a file on the disk. Throws Error (input) if it is missing, a folder, or unreadable.
std::shared_ptr<const ReadableFile> open_readable(const std::string& path);

/// Fills all of `room`. Throws Error (input) if the disk fails or the file has become shorter.
void read_all(const ReadableFile& file, Bytes offset, std::span<char> room);

/// A string that acts as a file.
class TextFile final : public ReadableFile {
 public:
  TextFile(std::string text, std::string name) : text_(std::move(text)), name_(std::move(name)) {}
  const std::string& name() const override { return name_; }
  Bytes size() const override { return static_cast<Bytes>(text_.size()); }
  std::size_t read(Bytes offset, std::span<char> room) const override {
    const auto from =
        std::string_view(text_).substr(std::min(text_.size(), static_cast<std::size_t>(offset)));
    return from.copy(room.data(), room.size());
  }

 private:
  std::string text_;
  std::string name_;
};

}  // namespace offprof
