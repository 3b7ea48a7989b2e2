#pragma once

#include <string_view>

namespace offprof {

/// `0.1.0`: the project's version.
std::string_view program_version();

/// Where a bug can be reported, in words.
std::string_view bug_report_request();

}  // namespace offprof
