#include "cli/terminal/status_line.h"

#include "cli/terminal/terminal.h"
#include "traces/base/temporary.h"

namespace offprof {

StatusLine::StatusLine(std::ostream& err, bool enabled, std::size_t width)
    : err_(err), enabled_(enabled), width_(width) {}

StatusLine::~StatusLine() {
  wipe();
}

void StatusLine::show(const std::string& text) {
  if (!enabled_) return;
  set_line_is_open(true);
  err_ << kWipeLine << cut_to_width(text, width_ - 1) << std::flush;
  shown_ = true;
}

void StatusLine::wipe() {
  if (!shown_) return;
  err_ << kWipeLine << std::flush;
  set_line_is_open(false);
  shown_ = false;
}

}  // namespace offprof
