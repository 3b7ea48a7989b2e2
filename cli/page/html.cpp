#include "cli/page/html.h"

namespace offprof {

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += letter;
    }
  }
  return escaped;
}

std::string fill_template(std::string_view text,
                          const std::map<std::string, std::string, std::less<>>& parts) {
  std::string filled;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    filled += text.substr(0, open);
    if (open == std::string_view::npos) break;
    const std::size_t close = text.find('}', open);
    const auto part =
        close == std::string_view::npos ? parts.end() : parts.find(text.substr(open + 1, close - open - 1));
    if (part == parts.end()) {
      filled += '{';
      text.remove_prefix(open + 1);
    } else {
      filled += part->second;
      text.remove_prefix(close + 1);
    }
  }
  return filled;
}

}  // namespace offprof
