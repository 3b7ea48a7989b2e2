#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/properties/instruction.h"

namespace offprof {

/// Formats a case as a file. `program` is a list of [operation, first, second, number]; `policies` have the
/// format of policy files. `findings`: the failed checks, for the reader of the file.
std::string format_case(const RandomCase& random_case, const std::vector<std::string>& findings = {});
/// Reads a case from such a file. Throws Error (input).
RandomCase read_case(const std::string& path);

/// Prints a case for rapidcheck.
std::ostream& operator<<(std::ostream& out, const RandomCase& random_case);

}  // namespace offprof
