#include "cli/base/version.h"

namespace offprof {

std::string_view program_version() {
  return OFFPROF_VERSION;
}

std::string_view bug_report_request() {
  return "This is a bug in offprof. Please report it with the command line, the message above and the output "
         "of "
         "`offprof doctor`.";
}

}  // namespace offprof
