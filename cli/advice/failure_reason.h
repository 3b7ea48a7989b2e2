#pragma once

#include <string>

namespace offprof {

/// Returns why a run of offprof failed: the last error in its standard error, on one line and without its
/// hint; of a run that printed no error, the exit status.
std::string failure_reason(const std::string& standard_error, int status);

}  // namespace offprof
