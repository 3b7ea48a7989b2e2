#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/terminal.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "traces/model/link.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// Explains the figures of a policy: the place and the contents of the device memory peak, and the stalls.
struct Explanation {
  ProgramPlace peak_place;
  DeviceContent peak_content;
  std::vector<Stall> stalls;  ///< longest first
};

/// Returns the parts of device memory: a name for humans and the corresponding figure.
const std::vector<std::pair<const char*, Bytes DeviceContent::*>>& content_parts();

Explanation explain(const TraceSteps& steps, const Policy& policy, const Link& link);

nlohmann::ordered_json to_json(const Explanation& explanation);
/// Returns a few lines: `peak in backward, at AddmmBackward0: weights, optimiser state and inputs 2.1 MiB,
/// ...`. Omits the digits of times that `times_unsure_by` makes uncertain: see duration_text.
std::string to_text(const Explanation& explanation, const Page& page, Nanoseconds times_unsure_by = 0);

}  // namespace offprof
