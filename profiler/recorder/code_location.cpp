#include "profiler/recorder/code_location.h"

#include "engine/checkpointing/module_path.h"

namespace offprof {

CodeLocation location_in_torch_script() {
  return {.module = current_module_path(), .line = {}};
}

}  // namespace offprof
