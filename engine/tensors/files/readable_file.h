#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "traces/units.h"

namespace offprof {

/// Bytes that can be read from anywhere on, by several threads at once. Interface, so that tests can count
/// what is read.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  /// What errors call it.
  virtual const std::string& name() const = 0;
  /// Bytes, when it was opened.
  virtual Bytes size() const = 0;
  /// Fills `room` with what stands from `offset` on; says how much there was, less than all of it only at the
  /// end. Throws Error (input) where the disk refuses.
  virtual std::size_t read(Bytes offset, std::span<char> room) const = 0;
};

/// A file on the disk. Throws Error (input): not there, a folder, unreadable.
std::shared_ptr<const ReadableFile> open_readable(const std::string& path);

/// Fills all of `room`. Throws Error (input) where the file has become shorter, too.
void read_all(const ReadableFile& file, Bytes offset, std::span<char> room);

/// A text that stands for a file.
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
