#pragma once

#include <memory>

#include "cli/base/command.h"

namespace offprof {

/// Creates `offprof advise PROGRAM`, which records and searches configurations and policies, and recommends
/// one.
std::unique_ptr<Subcommand> make_advise_command();

/// Creates `offprof calibrate`, which measures a GPU and writes its profile.
std::unique_ptr<Subcommand> make_calibrate_command();

/// Creates `offprof diff BASE NEW`, which shows the differences between two runs. It does not judge them;
/// `offprof gate` does.
std::unique_ptr<Subcommand> make_diff_command();

/// Creates `offprof doctor`, which lists what works, what is missing, and how to fix it.
std::unique_ptr<Subcommand> make_doctor_command();

/// Creates `offprof exec -- COMMAND`, which runs any command, whose Python processes use the virtual GPU,
/// without recording.
std::unique_ptr<Subcommand> make_exec_command();

/// Creates `offprof export POLICY --to ENGINE`, which writes the nearest settings of another engine.
std::unique_ptr<Subcommand> make_export_command();

/// Creates `offprof gate`, which fails with exit status 1 if a figure is worse than a baseline allows.
std::unique_ptr<Subcommand> make_gate_command();

/// Creates `offprof import CONFIG --from ENGINE`, which writes the policy that stands for the settings of
/// another engine.
std::unique_ptr<Subcommand> make_import_command();

/// Creates `offprof inspect FILE`, which lists the tensors of a file, or describes its other content.
std::unique_ptr<Subcommand> make_inspect_command();

/// Creates `offprof report TRACE...`, which writes a page with charts and tables of one trace or several.
std::unique_ptr<Subcommand> make_report_command();

/// Creates `offprof run MODEL.pt`, which trains some real steps under a policy and traces them.
std::unique_ptr<Subcommand> make_run_command();

/// Creates `offprof simulate TRACE`, which replays a recorded step under another policy or over
/// another link.
std::unique_ptr<Subcommand> make_simulate_command();

/// Creates `offprof tune TRACE`, which replays a recorded step under many policies and chooses one.
std::unique_ptr<Subcommand> make_tune_command();

/// Creates `offprof validate`, which compares predictions with real runs.
std::unique_ptr<Subcommand> make_validate_command();

/// Creates `offprof view TRACE`, which prints a readable summary of a trace.
std::unique_ptr<Subcommand> make_view_command();

/// Creates `offprof zoo list` and `offprof zoo make NAME -o model.pt`, which provide example models without
/// Python.
std::unique_ptr<Subcommand> make_zoo_command();

}  // namespace offprof
