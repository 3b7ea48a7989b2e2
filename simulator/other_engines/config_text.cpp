#include "simulator/other_engines/config_text.h"

#include <fmt/format.h>

#include "traces/io/json_access.h"

namespace offprof {

std::string python_string(std::string_view text) {
  return dump_json(nlohmann::ordered_json(std::string(text)), -1);
}

std::string python_list(std::span<const std::string> texts, std::size_t indent) {
  if (texts.empty()) return "[]";
  std::string list = "[\n";
  for (const std::string& text : texts)
    list += fmt::format("{:{}}{},\n", "", indent + 4, python_string(text));
  return list + fmt::format("{:{}}]", "", indent);
}

}  // namespace offprof
