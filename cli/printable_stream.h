#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace offprof {

/// Hands what is written on to another stream as for_terminal makes it, line by line.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::ostream& to) : to_(to) {}
  ~PrintableBuffer() override { hand_on(pending_.size()); }
  PrintableBuffer(const PrintableBuffer&) = delete;
  PrintableBuffer& operator=(const PrintableBuffer&) = delete;

 private:
  std::streamsize xsputn(const char* text, std::streamsize size) override;
  int_type overflow(int_type character) override;
  int sync() override;
  /// The first `size` bytes of `pending_`; whether they could be written.
  bool hand_on(std::size_t size);

  std::ostream& to_;
  std::string pending_;  ///< of a line: a character or a code may come in pieces
};

/// The stream of such a buffer. All that the program says goes through one of these, so that no name in a
/// file, and no error that quotes one, can do more than be shown.
class PrintableStream : public std::ostream {
 public:
  /// `to` must outlive it.
  explicit PrintableStream(std::ostream& to) : std::ostream(nullptr), buffer_(to) { rdbuf(&buffer_); }

 private:
  PrintableBuffer buffer_;
};

}  // namespace offprof
