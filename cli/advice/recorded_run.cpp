#include "cli/advice/recorded_run.h"

#include <fmt/format.h>

#include "cli/advice/failure_reason.h"
#include "cli/base/exit_status.h"
#include "cli/plugin/foreground_command.h"
#include "cli/plugin/scratch_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {

void run_recording(const std::vector<std::string>& words, const Variables& variables, const std::string& what,
                   const std::string& hint) {
  const ScratchFolder folder;
  const std::string errors = folder.file("errors.txt");
  const int status = run_this_program({{words, variables, errors}}).front();
  if (status == 0) return;
  const bool is_environment = status == static_cast<int>(ExitStatus::kEnvironment);
  throw Error(is_environment ? ErrorKind::kEnvironment : ErrorKind::kInput,
              fmt::format("{} could not be recorded: {}", what, failure_reason(read_file(errors), status)),
              hint);
}

}  // namespace offprof
