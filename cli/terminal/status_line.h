#pragma once

#include <ostream>
#include <string>

namespace offprof {

/// A progress line on a terminal. Each text overwrites the previous one, and the last one is erased. A signal
/// that ends the program adds a line break. Prints nothing if the stream is no terminal.
class StatusLine {
 public:
  /// `width` is the number of the terminal's columns. Longer texts are cut, since a wrapped line cannot be
  /// overwritten.
  StatusLine(std::ostream& err, bool enabled, std::size_t width);
  ~StatusLine();
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void show(const std::string& text);
  void wipe();

 private:
  std::ostream& err_;
  bool enabled_;
  std::size_t width_;
  bool shown_ = false;
};

}  // namespace offprof
