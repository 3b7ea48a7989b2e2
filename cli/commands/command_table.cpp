#include "cli/commands/command_table.h"
#include "cli/commands/diff_command.h"
#include "cli/commands/doctor_command.h"
#include "cli/commands/gate_command.h"
#include "cli/commands/run_command.h"
#include "cli/commands/simulate_command.h"
#include "cli/commands/tune_command.h"
#include "cli/commands/validate_command.h"
#include "cli/commands/view_command.h"
#include "cli/commands/zoo_command.h"

namespace offprof {

const std::vector<CommandEntry>& command_table() {
  static const std::vector<CommandEntry> table = {
      {"run", "Train some steps for real under an offload policy, and trace them",
       "  offprof run model.pt -o t.json\n"
       "  offprof run model.pt --input 'int64[4,128]<512' --threshold 64KiB --stash 2\n"
       "  offprof run model.pt --policy policy.json -o tuned.json.gz\n",
       make_run_command},
      {"tune", "Replay a trace under many policies, print the frontier, choose one",
       "  offprof tune t.json -o policy.json\n"
       "  offprof tune t.json --memory-budget 2GiB\n"
       "  offprof tune t.json --max-slowdown 2% --link 25GB/s,10us\n",
       make_tune_command},
      {"simulate", "Replay a trace under one policy: what if",
       "  offprof simulate t.json --policy trl\n"
       "  offprof simulate t.json --threshold 1MiB --stash 3 --link 12GB/s -o simulated.json\n",
       make_simulate_command},
      {"validate", "Hold predictions against real runs, setting by setting",
       "  offprof validate model.pt --trace t.json\n"
       "  offprof validate model.pt --trace t.json --policies 50 --rounds 11 --link 1GB/s\n",
       make_validate_command},
      {"gate", "Fail, with exit status 1, where memory or time got worse than a baseline allows",
       "  offprof gate t.json --update --baseline baseline.json\n"
       "  offprof gate t.json --baseline baseline.json\n"
       "  offprof gate t.json --baseline baseline.json --limit 'device_peak_bytes<=+0%'\n"
       "  offprof gate t.json --baseline baseline.json --limit 'step_time_ns_min<=+10%'\n",
       make_gate_command},
      {"diff", "What changed from one run to another: figures, policy, saved tensors, where time parts",
       "  offprof diff before.json after.json\n"
       "  offprof diff measured.json simulated.json --format json\n",
       make_diff_command},
      {"view", "Summarize a trace: figures, saved tensors, memory over the step, overlap",
       "  offprof view t.json\n"
       "  offprof view t.json.gz --top 30\n",
       make_view_command},
      {"zoo", "Make a model to try things on, with no Python",
       "  offprof zoo list\n"
       "  offprof zoo make transformer -o model.pt --batch 4 --layers 6\n",
       make_zoo_command},
      {"doctor", "What works on this machine, what is missing, and what would mend it",
       "  offprof doctor\n"
       "  offprof doctor --format json\n",
       make_doctor_command},
  };
  return table;
}

}  // namespace offprof
