#include "traces/program.h"

#include <cmath>

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

void scale_compute(Program& program, double factor) {
  double exact = 0;
  Nanoseconds given = 0;
  for (Nanoseconds& spread : program.compute_spread_ns)
    spread = std::llround(factor * static_cast<double>(spread));
  for (Event& event : program.events) {
    exact += factor * static_cast<double>(event.compute_ns);
    event.compute_ns = std::llround(exact) - given;
    given += event.compute_ns;
  }
}

}  // namespace offprof
