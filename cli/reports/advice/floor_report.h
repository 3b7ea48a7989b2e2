#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "simulator/advisor/advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// A change of the training that leaves less memory without activations, by arithmetic.
struct FloorRemedy {
  std::string name;         ///< `optimizer states of 8 bits`
  Bytes floor_bytes = 0;    ///< memory without activations, on one GPU
  bool fits = false;        ///< with the least activations that a way takes, it is within the limit
  std::string optimizer{};  ///< value of --optimizer that does it; empty: offprof has none, or
                            ///< the optimizer is that of a script
};

/// Memory of a step that activations have no part in, and what reduces it.
struct FloorReport {
  StepFloor floor;
  std::optional<Bytes> most{};  ///< limit of device memory
  /// Least memory that a way takes beside the floor, without parameter offload: activations and temporaries.
  Bytes least_rest = 0;
  std::vector<FloorRemedy> remedies{};  ///< empty if a way is within the limit

  bool exceeds_limit() const { return most && floor.total() > *most; }
};

/// Returns the report on the advice for the program of `plain`, the trace of the step with nothing done.
FloorReport make_floor_report(const Advice& advice, const Trace& plain);

nlohmann::ordered_json to_json(const FloorReport& report);
std::string to_text(const FloorReport& report, const Page& page);

}  // namespace offprof
