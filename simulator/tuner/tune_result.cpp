#include "simulator/tuner/tune_result.h"

#include <algorithm>

#include "traces/base/check.h"

namespace offprof {

const Candidate& least_memory(const TuneResult& result) {
  OFFPROF_CHECK(!result.frontier.empty());
  return *std::ranges::min_element(result.frontier, {}, [](const Candidate& candidate) {
    return device_bytes_taken(candidate.predicted);
  });
}

bool has_rules(const Candidate& candidate) {
  return !candidate.policy.rules.empty();
}

bool is_plan(const Candidate& candidate) {
  return candidate.policy.tensors.has_value();
}

}  // namespace offprof
