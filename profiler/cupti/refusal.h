#pragma once

#include <cupti_result.h>

#include <string_view>

#include "traces/error.h"

namespace offprof {

/// Why CUPTI refused, and what helps: an Error (environment). `doing`: `subscribing`, ...; `holder`: who else
/// traces, where CUPTI says so, else empty.
Error cupti_refusal(CUptiResult result, std::string_view doing, std::string_view holder = {});

}  // namespace offprof
