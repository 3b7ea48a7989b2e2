#include "cli/program/command_table.h"

#include "cli/commands/commands.h"
#include "cli/program/program_commands.h"

namespace offprof {

namespace {

const std::vector<CommandEntry> kCommands = {
    {"run", "Train a few real steps under an offload policy and record a trace",
     "  offprof run model.pt -o t.json\n"
     "  offprof run model.pt --input 'int64[4,128]<512' --threshold 64KiB --stash 2\n"
     "  offprof run model.pt --policy policy.json -o tuned.json.gz\n",
     make_run_command},
    {"advise", "Find the best way to run a step within a memory budget, and confirm it by a run",
     "  offprof advise model.pt --device virtual:h100-80gb --memory-budget 78GiB\n"
     "  offprof advise train.py --device virtual:l4 -- --batch 8\n",
     make_advise_command},
    {"tune", "Simulate many policies on a trace, print the Pareto frontier and choose one",
     "  offprof tune t.json -o policy.json\n"
     "  offprof tune t.json --memory-budget 2GiB\n"
     "  offprof tune t.json --max-slowdown 2% --link 25GB/s,10us\n",
     make_tune_command},
    {"simulate", "Predict memory and step time of one policy by replaying a trace",
     "  offprof simulate t.json --policy trl\n"
     "  offprof simulate t.json --threshold 1MiB --stash 3 --link 12GB/s -o simulated.json\n",
     make_simulate_command},
    {"validate", "Compare predictions with real runs of many settings",
     "  offprof validate model.pt --trace t.json\n"
     "  offprof validate model.pt --trace t.json --policies 50 --rounds 11 --link 1GB/s\n"
     "  offprof validate train.py --trace t.json --policies 6 -- --batch 8\n",
     make_validate_command},
    {"export", "Write the settings of another engine that are nearest to a policy, or a memory snapshot",
     "  offprof export policy.json --trace t.json --to trl\n"
     "  offprof export policy.json --trace t.json --to pytorch -o checkpointing.py\n"
     "  offprof export t.json --to memory-snapshot -o snapshot.pickle\n",
     make_export_command},
    {"import", "Write the policy of another engine's settings, or the trace of a memory snapshot",
     "  offprof import --from trl sft.yaml --trace t.json -o policy.json\n"
     "  offprof import --from deepspeed ds_config.json -o policy.json\n"
     "  offprof import --from memory-snapshot snapshot.pickle -o t.json.gz\n",
     make_import_command},
    {"gate", "Compare a trace with a baseline; exit status 1 if memory or time got worse than allowed",
     "  offprof gate t.json --update --baseline baseline.json\n"
     "  offprof gate t.json --baseline baseline.json\n"
     "  offprof gate t.json --baseline baseline.json --limit 'device_peak_bytes<=+0%'\n"
     "  offprof gate t.json --baseline baseline.json --limit 'step_time_ns_min<=+10%'\n"
     "  offprof gate t.json --limit 'device_peak_bytes<=8GiB'\n"
     "  offprof gate --format github --report junit=gate.xml                    models of offprof.toml\n",
     make_gate_command},
    {"diff", "Compare two runs: metrics, policy, saved tensors, timelines",
     "  offprof diff before.json after.json\n"
     "  offprof diff measured.json simulated.json --format json\n",
     make_diff_command},
    {"view", "Summarize a trace: metrics, saved tensors, memory over the step, overlap",
     "  offprof view t.json\n"
     "  offprof view t.json.gz --top 30\n",
     make_view_command},
    {"report", "Write a page with charts and tables: memory, timeline, frontier, saved tensors",
     "  offprof report t.json.gz -o report.html\n"
     "  offprof report keep.json.gz tuned.json.gz -o report.html\n",
     make_report_command},
    {"inspect", "List the tensors of a model, a checkpoint or a trace; describe a policy or a baseline",
     "  offprof inspect model.safetensors\n"
     "  offprof inspect model.pt --format json\n"
     "  offprof inspect policy.json\n",
     make_inspect_command},
    {"zoo", "Create an example model, without Python",
     "  offprof zoo list\n"
     "  offprof zoo make transformer -o model.pt --batch 4 --layers 6\n",
     make_zoo_command},
    {"exec", "Run any command; its Python processes use a virtual GPU",
     "  offprof exec -- python train.py --batch 32\n"
     "  offprof exec --device virtual:l4 --device-memory 16GiB -- pytest tests\n"
     "  offprof exec --world-size 64 --nodes 8 --rank 0,63 -- python train.py\n"
     "  offprof exec --format json -o memory.json -- torchrun --nproc-per-node 2 train.py\n",
     make_exec_command},
    {"calibrate", "Measure a GPU, and write its profile for the virtual GPU",
     "  offprof calibrate -o my-gpu.json\n"
     "  offprof calibrate --device cuda:1 --like h100-80gb -o my-gpu.json\n",
     make_calibrate_command},
    {"doctor", "Check this machine: what works, what is missing and how to fix it",
     "  offprof doctor\n"
     "  offprof doctor --format json\n",
     make_doctor_command},
    {"completion", "Print the completion script of a shell",
     "  eval \"$(offprof completion bash)\"                    in ~/.bashrc\n"
     "  eval \"$(offprof completion zsh)\"                     in ~/.zshrc, after compinit\n"
     "  offprof completion fish | source                      in ~/.config/fish/config.fish\n",
     make_completion_command},
    {"man", "Print the man page of the program or of a command",
     "  offprof man tune | man -l -\n"
     "  offprof man --directory ~/.local/share/man/man1\n",
     make_man_command},
};

}  // namespace

const std::vector<CommandEntry>& command_table() {
  return kCommands;
}

}  // namespace offprof
