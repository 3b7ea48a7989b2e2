#include "simulator/report/program_walk.h"

namespace offprof {
namespace {

/// Adds the module and line of a tensor that the operator saves or unpacks, unless an earlier one had them.
void add_place(Origin& origin, const SavedTensor& saved) {
  if (origin.module < 0) origin.module = saved.module;
  if (origin.line < 0) origin.line = saved.line;
}

/// Returns for each event at which an outermost operator begins its origin.
std::vector<Origin> origins_of(const StepProgram& program) {
  std::vector<Origin> origins(program.events.size());
  std::size_t depth = 0, begin = 0;
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    const Event& event = program.events[i];
    if (event.kind == EventKind::kOpBegin && depth++ == 0) {
      begin = i;
      origins[i].op = event.id;
    }
    if (event.kind == EventKind::kOpEnd && depth > 0) --depth;
    const bool has_tensor = event.kind == EventKind::kPack || event.kind == EventKind::kUnpack;
    if (depth > 0 && has_tensor) add_place(origins[begin], program.saved[event.id]);
  }
  return origins;
}

}  // namespace

ProgramWalk::ProgramWalk(const StepProgram& program) : program_(program), outermost_(origins_of(program)) {}

void ProgramWalk::advance_to(std::size_t end) {
  for (; next_ < end && next_ < program_.events.size(); ++next_) {
    const Event& event = program_.events[next_];
    if (event.kind == EventKind::kPhase) phase_ = event.id;
    if (event.kind == EventKind::kOpBegin) open_.push_back(next_);
    if (event.kind == EventKind::kOpEnd && !open_.empty()) open_.pop_back();
  }
}

Origin ProgramWalk::origin() const {
  if (open_.empty()) return {};
  Origin origin = outermost_[open_.front()];
  origin.op = program_.events[open_.back()].id;
  return origin;
}

}  // namespace offprof
