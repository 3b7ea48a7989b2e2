#include "traces/model/step_program.h"

#include <cmath>

namespace offprof {

std::vector<std::int32_t> backward_order(const StepProgram& program) {
  std::vector<std::int32_t> order;
  std::vector<char> seen(program.saved.size(), 0);
  for (const Event& event : program.events) {
    if (event.kind != EventKind::kUnpack || seen[event.id]) continue;
    seen[event.id] = 1;
    order.push_back(event.id);
  }
  return order;
}

namespace {

/// Scales a sequence of times so that their sum has the rounding error of a single time.
class Scale {
 public:
  explicit Scale(double factor) : factor_(factor) {}

  void apply(Nanoseconds& time) {
    exact_ += factor_ * static_cast<double>(time);
    time = std::llround(exact_) - given_;
    given_ += time;
  }

 private:
  double factor_;
  double exact_ = 0;
  Nanoseconds given_ = 0;
};

}  // namespace

void scale_compute(StepProgram& program, double factor) {
  scale_compute(program, factor, 0, program.events.size());
}

void scale_compute(StepProgram& program, double factor, std::size_t begin, std::size_t end) {
  Scale compute(factor), host(factor), stream(factor), path(factor), busy(factor);
  for (std::size_t i = begin; i < end; ++i) {
    compute.apply(program.events[i].compute_ns);
    if (!program.compute_spread_ns.empty()) {
      Nanoseconds& spread = program.compute_spread_ns[i];
      spread = std::llround(factor * static_cast<double>(spread));
    }
    if (program.work.empty()) continue;
    Work& work = program.work[i];
    host.apply(work.host_ns);
    stream.apply(work.stream_ns);
    path.apply(work.path_ns);
    busy.apply(work.busy_ns);
    if (work.waits()) work.wait_ns = std::llround(factor * static_cast<double>(work.wait_ns));
  }
}

}  // namespace offprof
