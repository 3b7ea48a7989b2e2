#pragma once

#include <CLI/App.hpp>

#include "traces/base/error.h"

namespace offprof {

/// Returns an error for a command line that `app` could not parse, in our own words, with a guess at the
/// intended text. Reports an unknown flag first, since a missing required flag is mostly a consequence of it.
Error usage_error(CLI::App& app, const CLI::ParseError& cause);

}  // namespace offprof
