#pragma once

#include <ostream>
#include <string>

namespace offprof {

/// One line on a terminal that says what goes on, overwritten by the next and wiped in the end; a signal that
/// ends the program ends the line. Elsewhere: silent.
class StatusLine {
 public:
  /// `width`: the terminal's columns; a longer text is cut, since a wrapped line cannot be overwritten.
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
