#pragma once

#include <cupti_result.h>

#include <string_view>

#include "traces/base/error.h"

namespace offprof {

/// Returns an Error (environment) with CUPTI's reason for refusing and a hint. `doing` is the refused action,
/// such as `subscribing`; `holder` is the other tracer if CUPTI names it, else empty.
Error cupti_refusal(CUptiResult result, std::string_view doing, std::string_view holder = {});

}  // namespace offprof
