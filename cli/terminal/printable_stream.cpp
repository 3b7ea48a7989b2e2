#include "cli/terminal/printable_stream.h"

#include "cli/terminal/terminal.h"

namespace offprof {

std::streamsize PrintableBuffer::xsputn(const char* text, std::streamsize size) {
  pending_.append(text, static_cast<std::size_t>(size));
  return hand_on(pending_.rfind('\n') + 1) ? size : 0;
}

PrintableBuffer::int_type PrintableBuffer::overflow(int_type character) {
  if (traits_type::eq_int_type(character, traits_type::eof())) return traits_type::not_eof(character);
  const char byte = traits_type::to_char_type(character);
  return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
}

int PrintableBuffer::sync() {
  const bool written = hand_on(pending_.size());
  return written && to_.flush() ? 0 : -1;
}

bool PrintableBuffer::hand_on(std::size_t size) {
  if (size > 0) to_ << for_terminal(std::string_view(pending_).substr(0, size));
  pending_.erase(0, size);
  return static_cast<bool>(to_);
}

}  // namespace offprof
