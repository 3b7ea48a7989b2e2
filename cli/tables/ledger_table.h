#pragma once

#include <string>

#include "cli/terminal/terminal.h"
#include "traces/model/ledger.h"

namespace offprof {

/// Returns a table of the bytes that autograd saved, by placement and reason, with their sum.
std::string ledger_table(const Ledger& ledger, const Page& page);

}  // namespace offprof
