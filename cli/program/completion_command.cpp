#include <memory>

#include "cli/help/completion_scripts.h"
#include "cli/options/options.h"
#include "cli/program/program_commands.h"

namespace offprof {
namespace {

class CompletionCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    add_choice_option(app, "SHELL", shell_,
                      {{"bash", Shell::kBash}, {"zsh", Shell::kZsh}, {"fish", Shell::kFish}},
                      "Shell: bash, zsh or fish")
        ->required();
    add_output_option(app, output_, "File for the script (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    context.print(std::string(completion_script(shell_)), output_);
    return ExitStatus::kOk;
  }

 private:
  Shell shell_ = Shell::kBash;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_completion_command() {
  return std::make_unique<CompletionCommand>();
}

}  // namespace offprof
