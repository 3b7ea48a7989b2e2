#pragma once

#include <string>
#include <vector>

#include "cli/reports/next_command.h"
#include "simulator/advisor/advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// How to use a way in training.
struct WayInstructions {
  std::vector<std::string> run{};  ///< words of the `offprof run` of the way
  /// Words of the command that writes its policy; empty: it is written, or a preset.
  std::vector<std::string> policy_command{};
  std::string policy{};    ///< path of its policy, or name of a preset
  bool is_script = false;  ///< the program is a training script
  bool is_job = false;     ///< of several ranks, which `run` records but does not train
  Variables variables{};   ///< of the run
  /// Text of the training script; empty: not known. Engines that it does not name are left out.
  std::string source{};
  /// The steps that `run` records before the policy applies, with nothing offloaded, do not fit the device.
  bool first_steps_exceed = false;
};

/// Returns true if the configuration of the way, with nothing offloaded, is known not to fit the device.
bool first_steps_exceed(const Advice& advice, const Way& way, const Environment& environment);

/// Trace that the commands of the instructions write.
inline constexpr const char* kAdvisedTrace = "advised.json.gz";

/// Returns the commands to run next, one a line: `Next:` and `Then:` run the way, and the lines after `In
/// your own training:` export it to other engines, train the script on under it, or are Python. Every command
/// can be pasted into a shell, in this order.
std::string instructions_text(const WayInstructions& instructions, const Way& way);

}  // namespace offprof
