#include "engine/torch/torch_error.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <string_view>

namespace offprof {
namespace {

/// The interpreter ends its report with this, followed by the operator's own message.
constexpr std::string_view kReasonMark = "RuntimeError: ";
constexpr std::size_t kLongestReason = 400;

}  // namespace

std::string readable_reason(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string reason = torch_error != nullptr ? torch_error->what_without_backtrace() : error.what();
  if (const std::size_t mark = reason.rfind(kReasonMark); mark != std::string::npos)
    reason.erase(0, mark + kReasonMark.size());
  if (const std::size_t frames = reason.find("\nException raised from"); frames != std::string::npos)
    reason.erase(frames);
  while (!reason.empty() && (reason.back() == '\n' || reason.back() == ' ')) reason.pop_back();
  std::replace(reason.begin(), reason.end(), '\n', ' ');
  if (reason.size() > kLongestReason) reason.replace(kLongestReason, std::string::npos, "...");
  return reason;
}

}  // namespace offprof
