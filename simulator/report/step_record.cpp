#include "simulator/report/step_record.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "simulator/report/program_walk.h"
#include "simulator/steps/views.h"

namespace offprof {
namespace {

/// Returns for each storage the first saved tensor that it holds; -1: none.
std::vector<SavedId> first_tensors(const StepProgram& program) {
  std::vector<SavedId> first(program.storages.size(), -1);
  for (std::size_t i = program.saved.size(); i-- > 0;)
    if (program.saved[i].storage >= 0) first[program.saved[i].storage] = static_cast<SavedId>(i);
  return first;
}

bool is_phase(const StepProgram& program, std::int32_t phase, std::string_view name) {
  return phase >= 0 && program.names[phase] == name;
}

class StepRecorder final : public ReplayListener {
 public:
  StepRecorder(const StepProgram& program, const Step& step)
      : program_(program), step_(step), walk_(program), first_tensor_(first_tensors(program)) {
    record_.resident_bytes = step.resident_bytes();
    record_.placements.resize(program.saved.size());
  }

  void on_absent(std::int32_t storage) override {
    record_.resident_bytes -= program_.storages[storage].bytes;
  }

  void on_carried(const CarriedCopy& copy, std::int32_t storage) override {
    MemoryLife life{.bytes = copy.device_bytes, .kind = MemoryKind::kRestored};
    life.tensor = first_tensor_[step_.renewals()[copy.renewal].new_storage];
    open_.resize(std::max(open_.size(), static_cast<std::size_t>(storage) + 1), kNoLife);
    open_[storage] = begin(life);
  }

  void on_event_begin(std::size_t index, Nanoseconds now) override {
    walk_.advance_to(static_cast<std::size_t>(step_.program_index()[index]));
    now_ = now;
    command_ = {};
    ++moment_;
  }

  void on_event(std::size_t index, Nanoseconds now) override {
    if (step_.events()[index].kind == EventKind::kBackwardEnd) mark_gradients();
    record_.event_ns.push_back(now);
  }

  void on_command(const Command& command, Nanoseconds now) override {
    now_ = now;
    command_ = command;
    ++moment_;
    if (const auto* const encode = std::get_if<Encode>(&command)) encoded_.push_back(encode->copy);
    if (const auto* const decode = std::get_if<Decode>(&command)) std::erase(encoded_, decode->copy);
  }

  void on_allocate(std::int32_t storage, Bytes bytes) override {
    if (bytes == 0) return;
    if (static_cast<std::size_t>(storage) >= open_.size()) open_.resize(std::size_t(storage) + 1, kNoLife);
    MemoryLife life = life_of(storage, bytes);
    life.stream = step_.stream_of(storage);
    open_[storage] = begin(life);
  }

  void on_free(std::int32_t storage) override {
    const bool has_life = static_cast<std::size_t>(storage) < open_.size() && open_[storage] != kNoLife;
    if (!has_life) return free_resident(storage);
    const std::int32_t life = std::exchange(open_[storage], kNoLife);
    const bool is_momentary = begun_[life].moment == moment_ && command_ && is_of_engine(storage);
    if (is_momentary) record_.lives[life].kind = MemoryKind::kTemporary;
    end(life);
  }

  void on_staging(Bytes bytes) override {
    MemoryLife life{.bytes = bytes, .stream = kCopyOutStream, .origin = walk_.origin()};
    if (command_) life.tensor = copy_fields(*command_)->tensor;
    end(begin(life));
  }

  void on_placement(SavedId tensor, const PackDecision& decision) override {
    record_.placements[tensor] = decision;
  }
  void on_stall(const Stall& stall) override { record_.stalls.push_back(stall); }
  void on_copy(const CopyCommand& command, const VirtualClock::Copy& copy) override {
    add_copy(copy, command.tensor);
  }
  void on_disk_transfer(const CopyCommand& command, const VirtualClock::Copy& transfer) override {
    add_copy(transfer, command.tensor);
  }
  void on_parameter_copy(const VirtualClock::Copy& copy) override { add_copy(copy, -1); }

  /// Puts the residents that the step has freed in front of all other lives.
  StepRecord take() {
    std::vector<MemoryLife> lives;
    std::vector<MemoryChange> changes;
    for (const std::int32_t storage : record_.freed_residents) {
      const Bytes bytes = program_.storages[storage].bytes;
      changes.push_back({0, static_cast<std::int32_t>(lives.size()), true});
      lives.push_back({.bytes = bytes, .kind = MemoryKind::kResident});
      record_.resident_bytes -= bytes;
    }
    const auto residents = static_cast<std::int32_t>(lives.size());
    for (MemoryChange change : record_.changes) {
      change.life = change.life < 0 ? ~change.life : change.life + residents;
      changes.push_back(change);
    }
    lives.insert(lives.end(), record_.lives.begin(), record_.lives.end());
    record_.lives = std::move(lives);
    record_.changes = std::move(changes);
    return std::move(record_);
  }

 private:
  static constexpr std::int32_t kNoLife = -1;
  struct Begun {
    std::size_t moment = 0;  ///< see moment_
    bool in_backward = false;
    bool has_ended = false;
  };

  bool is_of_engine(std::int32_t storage) const {
    return static_cast<std::size_t>(storage) >= program_.storages.size();
  }

  MemoryLife life_of(std::int32_t storage, Bytes bytes) const {
    MemoryLife life{.bytes = bytes, .origin = walk_.origin()};
    if (is_of_engine(storage)) {
      const CopyCommand* const copy = command_ ? copy_fields(*command_) : nullptr;
      life.kind = copy != nullptr && std::ranges::find(encoded_, copy->copy) != encoded_.end()
                      ? MemoryKind::kEncoded
                      : MemoryKind::kRestored;
      if (copy != nullptr) life.tensor = copy->tensor;
    } else {
      life.kind = kind_of(storage);
      life.tensor = first_tensor_[storage];
    }
    if (life.tensor >= 0) add_place(life.origin, program_.saved[life.tensor]);
    return life;
  }

  /// The tensor's own place is more precise than that of the operator.
  static void add_place(Origin& origin, const SavedTensor& saved) {
    if (saved.module >= 0) origin.module = saved.module;
    if (saved.line >= 0) origin.line = saved.line;
  }

  MemoryKind kind_of(std::int32_t storage) const {
    if (is_older_than_step(program_.storages[storage].role)) return MemoryKind::kResident;
    if (step_.holds_parameters(storage)) return MemoryKind::kParameters;
    if (first_tensor_[storage] >= 0) return MemoryKind::kSaved;
    return is_phase(program_, walk_.phase(), "optimizer") ? MemoryKind::kOptimizer : MemoryKind::kTemporary;
  }

  std::int32_t begin(const MemoryLife& life) {
    const auto index = static_cast<std::int32_t>(record_.lives.size());
    record_.lives.push_back(life);
    begun_.push_back({moment_, is_phase(program_, walk_.phase(), "backward"), false});
    record_.changes.push_back({now_, index, true});
    return index;
  }

  void end(std::int32_t life) {
    begun_[life].has_ended = true;
    record_.changes.push_back({now_, life, false});
  }

  /// Records the end of a storage that is older than the step; take() adds its life.
  void free_resident(std::int32_t storage) {
    if (is_of_engine(storage) || program_.storages[storage].bytes == 0) return;
    record_.changes.push_back({now_, ~static_cast<std::int32_t>(record_.freed_residents.size()), false});
    record_.freed_residents.push_back(storage);
  }

  void mark_gradients() {
    for (std::size_t i = 0; i < record_.lives.size(); ++i)
      if (begun_[i].in_backward && !begun_[i].has_ended && record_.lives[i].kind == MemoryKind::kTemporary)
        record_.lives[i].kind = MemoryKind::kGradient;
  }

  void add_copy(const VirtualClock::Copy& copy, SavedId tensor) {
    record_.copies.push_back({copy.track, copy.begin, copy.end, copy.bytes, tensor});
  }

  const StepProgram& program_;
  const Step& step_;
  ProgramWalk walk_;
  std::vector<SavedId> first_tensor_;
  StepRecord record_;
  std::vector<Begun> begun_;        ///< by life
  std::vector<std::int32_t> open_;  ///< by storage: the life that has begun; kNoLife: none
  std::vector<CopyId> encoded_;     ///< copies whose storage is the encoded tensor
  std::optional<Command> command_;  ///< the command that is being carried out
  Nanoseconds now_ = 0;
  std::size_t moment_ = 0;  ///< number of events and commands so far
};

/// Adds the outermost operators and the phases of a replayed timeline. The timeline has its operators in the
/// order in which they end.
void add_timeline(StepRecord& record, const StepProgram& program, const Timeline& timeline) {
  ProgramWalk walk(program);
  std::size_t event = 0;
  for (const Span& span : timeline.spans) {
    const Nanoseconds end = span.begin_ns + span.duration_ns;
    if (span.kind == SpanKind::kPhase) record.phases.push_back({span.name, span.begin_ns, end});
    if (span.kind != SpanKind::kOp) continue;
    for (walk.advance_to(event); event < program.events.size(); walk.advance_to(++event))
      if (program.events[event].kind == EventKind::kOpEnd && walk.depth() > 0) break;
    if (walk.depth() == 1) record.ops.push_back({span.begin_ns, end, walk.phase(), walk.origin()});
    ++event;
  }
}

constexpr std::array<std::string_view, 8> kKindNames = {"resident", "parameters", "gradient",  "saved",
                                                        "restored", "encoded",    "temporary", "optimizer"};
static_assert(kKindNames.size() == static_cast<std::size_t>(MemoryKind::kOptimizer) + 1);

}  // namespace

std::string_view to_string(MemoryKind kind) {
  return kKindNames.at(static_cast<std::size_t>(kind));
}

StepRecord record_step(const StepProgram& program, const Step& step, const Policy& policy, const Link& link) {
  StepRecorder recorder(program, step);
  const Prediction prediction = replay(step, policy, link, &recorder);
  StepRecord record = recorder.take();
  record.prediction = prediction;
  add_timeline(record, program, replay_timeline(program, step, policy, link));
  return record;
}

Bytes peak_of(const StepRecord& record) {
  Bytes live = record.resident_bytes, peak = live;
  for (const MemoryChange& change : record.changes) {
    live += change.is_begin ? record.lives[change.life].bytes : -record.lives[change.life].bytes;
    peak = std::max(peak, live);
  }
  return peak;
}

}  // namespace offprof
