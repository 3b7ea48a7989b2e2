#include "simulator/replay/step.h"

#include <algorithm>
#include <utility>

namespace offprof {
namespace {

bool matters_to_memory(EventKind kind) {
  return kind != EventKind::kPhase && kind != EventKind::kOpBegin && kind != EventKind::kOpEnd;
}

/// Returns a copy without the parts that only a replay needs.
std::shared_ptr<const StepProgram> rule_subjects_of(const StepProgram& program) {
  auto subjects = std::make_shared<StepProgram>();
  subjects->names = program.names;
  subjects->storages = program.storages;
  subjects->saved = program.saved;
  subjects->recomputations = program.recomputations;
  return subjects;
}

/// Returns the work of the host and the compute stream alone.
Work own_work_of(const std::vector<StreamCommand>& commands, const Work& after) {
  Work work;
  for (const StreamCommand& command : commands) work = then(work, command.before);
  return then(work, after);
}

}  // namespace

Step::Step(const StepProgram& program, EngineCosts costs, std::span<const TransformProfile> profiles)
    : costs_(std::move(costs)),
      free_points_(program.free_points),
      resident_bytes_(program.resident_bytes),
      allocator_(program.allocator),
      backward_order_(offprof::backward_order(program)),
      rule_subjects_(rule_subjects_of(program)),
      profiles_(profiles) {
  add_events(program);
  add_renewals(program);
  storage_bytes_.reserve(program.storages.size());
  for (std::size_t i = 0; i < program.storages.size(); ++i) {
    storage_bytes_.push_back(program.storages[i].bytes);
    if (is_older_than_step(program.storages[i].role)) residents_.push_back(static_cast<std::int32_t>(i));
    if (program.storages[i].role == StorageRole::kGathered)
      parameters_.push_back(static_cast<std::int32_t>(i));
  }
  const auto is_on_other = [](const ProgramStorage& storage) { return storage.stream != kComputeStream; };
  if (std::ranges::any_of(program.storages, is_on_other))
    for (const ProgramStorage& storage : program.storages) streams_.push_back(storage.stream);
  add_requests(program);
  for (const Event& event : events_) {
    if (event.kind == EventKind::kFetch) parameters_.push_back(event.id);
    if (event.kind == EventKind::kFetch || event.kind == EventKind::kSave)
      most_copied_bytes_ += static_cast<double>(storage_bytes_[event.id]);
  }
  std::ranges::sort(parameters_);
  for (const StreamCommand& command : program.stream_commands) {
    most_copied_bytes_ += static_cast<double>(command.bytes);
    program_copies_ += command.copies() ? 1 : 0;
    meets_copies_ = meets_copies_ || command.meets_copies();
  }
}

StepPlacements Step::place(const Policy& policy) const {
  return choose_placements(policy, *rule_subjects_, profiles_);
}

void Step::add_events(const StepProgram& program) {
  Nanoseconds since_last = 0;
  Work work_since_last;
  StreamWork streams_since_last;
  auto command = program.stream_commands.begin();
  const auto keep_work = [&] {
    if (!streams_since_last.commands.empty()) {
      streams_since_last.event = work_.size();
      streams_since_last.after = work_since_last;
      work_since_last = own_work_of(streams_since_last.commands, work_since_last);
      stream_work_.push_back(std::exchange(streams_since_last, {}));
    }
    work_.push_back(std::exchange(work_since_last, {}));
  };
  const bool has_work = !program.work.empty();
  // Reserves the exact size: the spare capacity of a growing list would be larger than its contents.
  const auto kept =
      static_cast<std::size_t>(std::ranges::count_if(program.events, matters_to_memory, &Event::kind));
  events_.reserve(kept);
  program_index_.reserve(kept);
  if (has_work) work_.reserve(kept + 1);
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    const Event& event = program.events[i];
    since_last += event.compute_ns;
    compute_ns_ += event.compute_ns;
    for (; command != program.stream_commands.end() && command->event == static_cast<std::int32_t>(i);
         ++command) {
      streams_since_last.commands.push_back(*command);
      Work& before = streams_since_last.commands.back().before;
      before = then(std::exchange(work_since_last, {}), before);
    }
    if (has_work) work_since_last = then(work_since_last, program.work[i]);
    if (!matters_to_memory(event.kind)) continue;
    events_.push_back({event.kind, event.id, std::exchange(since_last, 0)});
    program_index_.push_back(static_cast<std::int32_t>(i));
    if (has_work) keep_work();
  }
  tail_compute_ns_ = since_last;
  if (has_work) keep_work();
}

void Step::add_renewals(const StepProgram& program) {
  const auto carried = carried_storages(program), of_program = carried_storages(program, true);
  carries_tensors_ = !carried.empty();
  for (const Renewal& renewal : program.renewals) {
    StepRenewal& added = renewals_.emplace_back();
    added.old_storage = renewal.old_storage;
    added.new_storage = renewal.new_storage;
    added.has_tensors = std::ranges::find(carried, renewal.new_storage) != carried.end();
    added.is_programs =
        !added.has_tensors || std::ranges::find(of_program, renewal.new_storage) != of_program.end();
    if (renewal.let_go < 0 || !added.has_tensors || !added.is_programs) continue;
    const auto event = std::ranges::lower_bound(program_index_, renewal.let_go) - program_index_.begin();
    let_goes_.push_back({static_cast<std::size_t>(event), renewal.old_storage});
  }
  std::ranges::stable_sort(let_goes_, {}, &LetGo::event);
}

std::span<const Step::LetGo> Step::let_goes(std::size_t event) const {
  if (let_goes_.empty()) return {};
  const auto first = std::ranges::lower_bound(let_goes_, event, {}, &LetGo::event);
  return {first, std::ranges::upper_bound(first, let_goes_.end(), event, {}, &LetGo::event)};
}

const Step::StreamWork* Step::stream_work(std::size_t event) const {
  const auto found = std::ranges::lower_bound(stream_work_, event, {}, &StreamWork::event);
  return found == stream_work_.end() || found->event != event ? nullptr : &*found;
}

std::span<const FreePoint> Step::free_points_of(std::int32_t storage) const {
  const auto first = std::ranges::lower_bound(free_points_, storage, {}, &FreePoint::storage);
  return {first, std::ranges::upper_bound(first, free_points_.end(), storage, {}, &FreePoint::storage)};
}

void Step::add_requests(const StepProgram& program) {
  requests_.reserve(program.saved.size());
  escapes_.reserve(program.saved.size());
  if (program.allocator) staging_bytes_.reserve(program.saved.size());
  for (const SavedTensor& saved : program.saved) {
    const std::int32_t storage = saved.storage < 0 ? add_storage_without_bytes() : saved.storage;
    requests_.push_back(
        {storage, saved.version, storage_bytes_[storage], saved.bytes, saved.movability, saved.is_parameter});
    most_copied_bytes_ += static_cast<double>(std::max(storage_bytes_[storage], saved.bytes));
    escapes_.push_back(saved.escapes ? 1 : 0);
    if (program.allocator) staging_bytes_.push_back(is_dense(*saved.layout) ? 0 : saved.bytes);
  }
  if (!program.staging.empty()) staging_work_.resize(requests_.size());
  for (const auto& [tensor, host_ns, stream_ns] : program.staging)
    staging_work_[tensor] = {host_ns, stream_ns, host_ns + stream_ns};
}

/// A trace gives the index -1 to a tensor without a storage.
std::int32_t Step::add_storage_without_bytes() {
  storage_bytes_.push_back(0);
  residents_.push_back(static_cast<std::int32_t>(storage_bytes_.size() - 1));
  return residents_.back();
}

}  // namespace offprof
