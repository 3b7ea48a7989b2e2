#include "traces/program.h"

namespace offprof {

std::vector<std::int32_t> backward_order(const Program& program) {
  std::vector<std::int32_t> order;
  std::vector<char> seen(program.saved.size(), 0);
  for (const Event& event : program.events) {
    if (event.kind != EventKind::kUnpack || seen[event.id]) continue;
    seen[event.id] = 1;
    order.push_back(event.id);
  }
  return order;
}

}  // namespace offprof
