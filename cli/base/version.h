#pragma once

#include <string_view>

namespace offprof {

/// Returns the project's version, such as `0.1.0`.
std::string_view program_version();

/// Returns a sentence that says where to report a bug.
std::string_view bug_report_request();

}  // namespace offprof
