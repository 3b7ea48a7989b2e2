#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal.h"
#include "simulator/trace_steps.h"
#include "simulator/views.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"

namespace offprof {

/// Why a policy's figures are what they are: where the device peak lies, what it consists of, what stalls.
struct Explanation {
  ProgramPlace peak_place;
  DeviceContent peak_content;
  std::vector<Stall> stalls;  ///< longest first
};

/// What device memory consists of: a name for people and the figure it names.
const std::vector<std::pair<const char*, Bytes DeviceContent::*>>& content_parts();

Explanation explain(const TraceSteps& steps, const Policy& policy, const Link& link);

nlohmann::ordered_json to_json(const Explanation& explanation);
/// A few lines: `peak in backward, at AddmmBackward0: weights, optimiser state and inputs 2.1 MiB, ...`.
/// Times in the digits that `times_unsure_by` leaves of them: see duration_text.
std::string to_text(const Explanation& explanation, const Page& page, Nanoseconds times_unsure_by = 0);

}  // namespace offprof
