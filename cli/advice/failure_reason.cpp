#include "cli/advice/failure_reason.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

namespace offprof {
namespace {

constexpr std::string_view kError = "error: ";

/// Returns true if another message begins with the line.
bool begins_message(const std::string& line) {
  return line.starts_with("hint: ") || line.starts_with("warning: ") || line.starts_with("note: ");
}

}  // namespace

std::string failure_reason(const std::string& standard_error, int status) {
  std::istringstream lines(standard_error);
  std::string reason;
  bool is_within_error = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kError)) {
      reason = line.substr(kError.size());
      is_within_error = true;
    } else if (line.empty() || begins_message(line)) {
      is_within_error = false;
    } else if (is_within_error) {
      reason += " " + line.substr(std::min(line.find_first_not_of(' '), line.size()));
    }
  }
  return reason.empty() ? fmt::format("the run ended with exit status {}", status) : reason;
}

}  // namespace offprof
