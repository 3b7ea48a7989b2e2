#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "tests/properties/instruction.h"

namespace offprof {

/// A case as a file: `program`, a list of [operation, first, second, number], and `policies` as policy files
/// have them. `findings`: what does not hold of it, for who reads the file.
std::string format_case(const RandomCase& random_case, const std::vector<std::string>& findings = {});
/// The reverse. Throws Error (input).
RandomCase read_case(const std::string& path);

/// How rapidcheck prints one.
std::ostream& operator<<(std::ostream& out, const RandomCase& random_case);

}  // namespace offprof
