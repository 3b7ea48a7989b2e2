#include "traces/analysis/compiled_graph.h"

#include <algorithm>
#include <string_view>

namespace offprof {

double share_of_compiled_graph(const StepProgram& program) {
  constexpr std::string_view kCompiled = "CompiledFunction";  // autograd function of AOTAutograd
  Bytes all = 0, of_node = 0, most = 0;
  for (const SavedTensor& saved : program.saved)
    if (saved.movability == Movability::kMovable) all += saved.bytes;
  for (const Event& event : program.events) {
    if (event.kind == EventKind::kNodeEnd) {
      most = std::max(most, of_node);
      of_node = 0;
    } else if (event.kind == EventKind::kUnpack) {
      const SavedTensor& saved = program.saved[static_cast<std::size_t>(event.id)];
      if (saved.movability == Movability::kMovable && program.names[saved.op] == kCompiled)
        of_node += saved.bytes;
    }
  }
  return all > 0 ? static_cast<double>(most) / static_cast<double>(all) : 0;
}

}  // namespace offprof
