#include "traces/model/step_program.h"

#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace offprof {

std::vector<std::int32_t> carried_storages(const StepProgram& program, std::optional<bool> of_program) {
  if (program.renewals.empty()) return {};
  std::vector<char> is_released(program.saved.size(), 0), is_freed(program.storages.size(), 0);
  for (const Event& event : program.events) {
    if (event.kind == EventKind::kRelease) is_released[event.id] = 1;
    if (event.kind == EventKind::kFree) is_freed[event.id] = 1;
  }
  std::unordered_set<std::int32_t> is_left;  // with a saved tensor
  for (std::size_t i = 0; i < program.saved.size(); ++i)
    if (!is_released[i] && program.saved[i].movability == Movability::kMovable)
      is_left.insert(program.saved[i].storage);
  std::vector<std::int32_t> storages;
  for (const Renewal& renewal : program.renewals)
    if (is_left.contains(renewal.new_storage) &&
        (!of_program || *of_program == (is_freed[renewal.new_storage] == 0)))
      storages.push_back(renewal.new_storage);
  return storages;
}

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

/// Finds what a program's points are used for.
class PointUse {
 public:
  explicit PointUse(const StepProgram& program) {
    for (const FreePoint& freed : program.free_points) waited_.insert(freed.point);
    for (const StreamCommand& command : program.stream_commands) {
      if (command.kind == StreamCommand::Kind::kRecord) streams_[command.point] = command.stream;
      if (is_needed_wait(command)) waited_.insert(command.point);
    }
  }

  bool is_needed(const StreamCommand& command) const {
    if (command.kind == StreamCommand::Kind::kRecord) return waited_.contains(command.point);
    return !command.has_point() || is_needed_wait(command);
  }

 private:
  bool is_needed_wait(const StreamCommand& command) const {
    const bool is_of_host = command.kind == StreamCommand::Kind::kHostWait;
    if (!is_of_host && command.kind != StreamCommand::Kind::kWait) return false;
    const auto recorded = streams_.find(command.point);
    return recorded != streams_.end() && (is_of_host || recorded->second != command.stream);
  }

  std::unordered_map<std::int32_t, std::int32_t> streams_;  ///< by point
  std::unordered_set<std::int32_t> waited_;
};

}  // namespace

void drop_unneeded_points(StepProgram& program) {
  const PointUse use(program);
  std::vector<StreamCommand> kept;
  std::unordered_map<std::int32_t, std::int32_t> numbers;  // of points
  std::int32_t event = -1;
  Work before;
  const auto end_event = [&] {
    if (event >= 0) program.work[event] = then(std::exchange(before, {}), program.work[event]);
  };
  for (StreamCommand command : program.stream_commands) {
    if (command.event != event) end_event();
    event = command.event;
    command.before = then(std::exchange(before, {}), command.before);
    if (!use.is_needed(command)) {
      before = command.before;
      continue;
    }
    if (command.kind == StreamCommand::Kind::kRecord)
      numbers.emplace(command.point, static_cast<std::int32_t>(numbers.size()));
    if (command.has_point()) command.point = numbers.at(command.point);
    kept.push_back(command);
  }
  end_event();
  program.stream_commands = std::move(kept);
  std::erase_if(program.free_points, [&](const FreePoint& freed) { return !numbers.contains(freed.point); });
  for (FreePoint& freed : program.free_points) freed.point = numbers.at(freed.point);
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
  Scale compute(factor), host(factor), stream(factor), path(factor), busy(factor), duration(factor);
  const auto apply = [&](Work& work) {
    host.apply(work.host_ns);
    stream.apply(work.stream_ns);
    path.apply(work.path_ns);
    busy.apply(work.busy_ns);
    if (work.waits()) work.wait_ns = std::llround(factor * static_cast<double>(work.wait_ns));
  };
  for (std::size_t i = begin; i < end; ++i) {
    compute.apply(program.events[i].compute_ns);
    if (!program.compute_spread_ns.empty()) {
      Nanoseconds& spread = program.compute_spread_ns[i];
      spread = std::llround(factor * static_cast<double>(spread));
    }
    if (!program.work.empty()) apply(program.work[i]);
  }
  for (StreamCommand& command : program.stream_commands) {
    const auto event = static_cast<std::size_t>(command.event);
    if (event < begin || event >= end) continue;
    duration.apply(command.duration_ns);
    apply(command.before);
  }
}

}  // namespace offprof
