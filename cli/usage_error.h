#pragma once

#include <CLI/App.hpp>

#include "traces/error.h"

namespace offprof {

/// What is wrong with a command line that `app` could not parse, in our words, and what was probably meant.
/// An unknown flag is told first: a complaint that a required one is missing mostly follows from it.
Error usage_error(CLI::App& app, const CLI::ParseError& cause);

}  // namespace offprof
