#pragma once

#include <ostream>
#include <streambuf>
#include <string>

namespace offprof {

/// Passes written text to another stream line by line, filtered by for_terminal.
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
  /// Writes the first `size` bytes of `pending_`. Returns true if the write succeeded.
  bool hand_on(std::size_t size);

  std::ostream& to_;
  std::string pending_;  ///< an incomplete line: a character or a code may arrive in pieces
};

/// Output stream with a PrintableBuffer. All output of offprof goes through such a stream, so that terminal
/// control codes in file contents, or in errors that quote them, are only displayed and never executed.
class PrintableStream : public std::ostream {
 public:
  /// `to` must outlive this stream.
  explicit PrintableStream(std::ostream& to) : std::ostream(nullptr), buffer_(to) { rdbuf(&buffer_); }

 private:
  PrintableBuffer buffer_;
};

}  // namespace offprof
