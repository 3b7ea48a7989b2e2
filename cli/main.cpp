#include <iostream>

#include "cli/app.h"
#include "traces/base/temporary.h"

int main(int argc, char** argv) {
  offprof::exit_cleanly_on_signals();
  return offprof::run_cli(argc, argv, std::cout, std::cerr, offprof::detect_terminal());
}
