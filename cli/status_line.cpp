#include "cli/status_line.h"

#include "cli/terminal.h"

namespace offprof {
namespace {

constexpr const char* kWipe = "\r\033[K";

}  // namespace

StatusLine::StatusLine(std::ostream& err, bool enabled, std::size_t width)
    : err_(err), enabled_(enabled), width_(width) {}

StatusLine::~StatusLine() {
  wipe();
}

void StatusLine::show(const std::string& text) {
  if (!enabled_) return;
  err_ << kWipe << cut_to_width(text, width_ - 1) << std::flush;
  shown_ = true;
}

void StatusLine::wipe() {
  if (!shown_) return;
  err_ << kWipe << std::flush;
  shown_ = false;
}

}  // namespace offprof
