#include "profiler/recording/program_builder.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/work/op_family.h"
#include "profiler/recording/numbered_pass.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

/// Returns true if every pass has such an event in the same place. The times at which memory is released
/// differ.
bool is_common(EventKind kind) {
  return kind != EventKind::kFreeRequested && kind != EventKind::kFree && kind != EventKind::kFreeUnpacked;
}

std::vector<Event> common_events(const NumberedPass& pass) {
  std::vector<Event> common;
  for (const Event& event : pass.events())
    if (is_common(event.kind)) common.push_back(event);
  return common;
}

/// Work of the model between two common events.
struct Between {
  Nanoseconds compute_ns = 0;
  std::vector<StreamCommand> stream_commands;
  Work work;  ///< since the last of them
};

void add(StreamCommand command, Between& work) {
  command.before = then(std::exchange(work.work, {}), command.before);
  work.stream_commands.push_back(command);
}

/// Returns the model's work before each common event since the one before, without the engine's part.
std::vector<Between> work_between(const RecordedPass& pass, const NumberedPass& numbered) {
  std::vector<Between> parts;
  Between since_last;
  Nanoseconds last_end = pass.begin_ns;
  int hooks = 0;
  auto command = pass.stream_commands.begin();
  for (std::size_t i = 0; i < pass.events.size(); ++i) {
    const RawEvent& event = pass.events[i];
    for (; command != pass.stream_commands.end() && command->event == static_cast<std::int32_t>(i); ++command)
      if (hooks == 0) add(*command, since_last);
    if (hooks == 0) {
      since_last.compute_ns += event.begin_ns - last_end;
      since_last.work = then(since_last.work, event.work);
    }
    last_end = event.end_ns;
    hooks += event.kind == RawKind::kHookBegin ? 1 : event.kind == RawKind::kHookEnd ? -1 : 0;
    const std::optional<EventKind> kind = numbered.kind_of(event);
    if (!kind || !is_common(*kind)) continue;
    parts.push_back(std::exchange(since_last, {}));
  }
  return parts;
}

std::string describe(const RecordedPass& pass, const NumberedPass& numbered, const std::vector<Event>& events,
                     std::size_t index) {
  if (index >= events.size()) return "nothing more";
  const Event& event = events[index];
  const auto of_tensor = [&](const char* what) { return what + std::to_string(event.id); };
  switch (event.kind) {
    case EventKind::kPhase:
      return "the phase " + pass.names[event.id];
    case EventKind::kOpBegin:
      return pass.names[event.id];
    case EventKind::kOpEnd:
      return "the end of " + pass.names[event.id];
    case EventKind::kAlloc:
      return "an allocation of " + std::to_string(numbered.storages()[event.id].bytes) + " bytes";
    case EventKind::kPack:
      return of_tensor("the saving of tensor ");
    case EventKind::kUnpack:
      return of_tensor("the unpack of saved tensor ");
    case EventKind::kRelease:
      return of_tensor("the release of saved tensor ");
    case EventKind::kNodeEnd:
      return "the end of an autograd node";
    case EventKind::kBackwardEnd:
      return "the end of backward";
    case EventKind::kFetch:
    case EventKind::kFetched:
    case EventKind::kSave:
      return "a copy of parameters";
    case EventKind::kFreeRequested:
    case EventKind::kFree:
    case EventKind::kFreeUnpacked:
      break;
  }
  OFFPROF_CHECK(false);  // no common events
}

bool same_memory(const ProgramStorage& a, const ProgramStorage& b) {
  return a.bytes == b.bytes && a.stream == b.stream;
}

bool same_event(const RecordedPass& a, const NumberedPass& numbered_a, const Event& event_a,
                const RecordedPass& b, const NumberedPass& numbered_b, const Event& event_b) {
  if (event_a.kind != event_b.kind) return false;
  switch (event_a.kind) {
    case EventKind::kPhase:
    case EventKind::kOpBegin:
    case EventKind::kOpEnd:
      return a.names[event_a.id] == b.names[event_b.id];
    case EventKind::kAlloc:
    case EventKind::kFetch:
    case EventKind::kFetched:
    case EventKind::kSave:
      return same_memory(numbered_a.storages()[event_a.id], numbered_b.storages()[event_b.id]);
    case EventKind::kPack:
      return event_a.id == event_b.id && a.saved[event_a.id].saved.layout == b.saved[event_b.id].saved.layout;
    default:
      return event_a.id == event_b.id;
  }
}

/// Returns the last operator that began before an event, to locate a difference in the model.
std::string operator_around(const RecordedPass& pass, const std::vector<Event>& events, std::size_t index) {
  for (std::size_t i = std::min(index, events.size()); i-- > 0;)
    if (events[i].kind == EventKind::kOpBegin) return pass.names[events[i].id];
  return "the beginning of the step";
}

/// Returns the index of the first common event in which the passes differ; nullopt: none.
std::optional<std::size_t> first_difference(const RecordedPass& a, const NumberedPass& numbered_a,
                                            const std::vector<Event>& events_a, const RecordedPass& b,
                                            const NumberedPass& numbered_b,
                                            const std::vector<Event>& events_b) {
  const std::size_t shared = std::min(events_a.size(), events_b.size());
  for (std::size_t i = 0; i < shared; ++i)
    if (!same_event(a, numbered_a, events_a[i], b, numbered_b, events_b[i])) return i;
  return events_a.size() == events_b.size() ? std::nullopt : std::optional(shared);
}

/// Describes the memory of steps that differ each time.
std::string peaks_of(std::span<const RecordedPass> keep_passes) {
  Bytes least = std::numeric_limits<Bytes>::max(), most = 0;
  for (const RecordedPass& pass : keep_passes) {
    least = std::min(least, peak_of(pass));
    most = std::max(most, peak_of(pass));
  }
  return "peak device memory of the recorded steps with nothing offloaded: " +
         (least == most ? format_bytes(most) : format_bytes(least) + " to " + format_bytes(most));
}

void check_same_program(const RecordedPass& a, const NumberedPass& numbered_a, const RecordedPass& b,
                        const NumberedPass& numbered_b, std::span<const RecordedPass> keep_passes) {
  const std::vector<Event> events_a = common_events(numbered_a);
  const std::vector<Event> events_b = common_events(numbered_b);
  const auto index = first_difference(a, numbered_a, events_a, b, numbered_b, events_b);
  if (!index) return;
  throw input_error(
      "the model's step differs from pass to pass, so one step does not predict the next: near " +
          operator_around(a, events_a, *index) + ", " + describe(a, numbered_a, events_a, *index) +
          " in one pass, " + describe(b, numbered_b, events_b, *index) + " in another; " +
          peaks_of(keep_passes),
      "offprof needs shapes that do not depend on the data; pad to fixed sizes, or remove "
      "data-dependent branches");
}

/// Returns the error for tensors of backward that are saved outside of it: their memory, and so the step
/// program, would depend on the policy.
Error saves_after_backward() {
  return input_error(
      "the model saves a tensor that shares the memory of a tensor which backward unpacked, after that "
      "backward",
      "Save a copy of it: call clone() on the gradient before it is used");
}

/// Returns the compute times by common event, over passes with the same common events.
std::vector<MeasuredQuartiles> compute_between(std::span<const std::vector<Between>> passes) {
  std::vector<MeasuredQuartiles> times;
  for (std::size_t i = 0; i < passes.front().size(); ++i) {
    std::vector<Nanoseconds> of_event;
    for (const std::vector<Between>& pass : passes) of_event.push_back(pass[i].compute_ns);
    times.push_back(summarize_measured(std::move(of_event)));
  }
  return times;
}

/// Sets the median compute times and their spread. Work and commands of streams are those of the last pass:
/// a program may do more on the host in its first steps, such as DTensor, which looks up each operator's
/// sharding once. Events that are not common take no time.
void add_times(StepProgram& program, const std::vector<std::vector<Between>>& passes, bool has_work) {
  const std::vector<MeasuredQuartiles> times = compute_between(passes);
  OFFPROF_CHECK(static_cast<std::size_t>(std::ranges::count_if(program.events, is_common, &Event::kind)) ==
                times.size());
  const bool has_spread = !has_work && passes.size() > 1;
  std::size_t common = 0;
  for (std::size_t index = 0; index < program.events.size(); ++index) {
    Event& event = program.events[index];
    const bool is_timed = is_common(event.kind);
    const MeasuredQuartiles time = is_timed ? times[common] : MeasuredQuartiles{};
    event.compute_ns = time.median_ns;
    if (has_spread) program.compute_spread_ns.push_back(time.high_ns - time.low_ns);
    if (has_work) program.work.push_back(is_timed ? passes.back()[common].work : Work{});
    if (is_timed) {
      for (StreamCommand command : passes.back()[common].stream_commands) {
        command.event = static_cast<std::int32_t>(index);
        program.stream_commands.push_back(command);
      }
    }
    common += is_timed ? 1 : 0;
  }
  drop_unneeded_points(program);
}

/// Returns the allocations that the model makes in the step, in order.
std::vector<std::int64_t> allocations_of(const RecordedPass& pass, const NumberedPass& numbered) {
  std::vector<std::int64_t> allocations;
  for (const RawEvent& event : pass.events)
    if (event.kind == RawKind::kAlloc && numbered.kind_of(event)) allocations.push_back(event.id);
  return allocations;
}

/// Returns what has to be reached in `keep_pass` before storages of the program, which `offload_pass` has
/// numbered, are free.
std::vector<FreePoint> free_points_of(const RecordedPass& keep_pass, const RecordedPass& offload_pass,
                                      const NumberedPass& offloaded) {
  if (keep_pass.free_points.empty()) return {};
  const std::vector<std::int64_t> kept = allocations_of(keep_pass, NumberedPass(keep_pass));
  const std::vector<std::int64_t> same = allocations_of(offload_pass, offloaded);
  OFFPROF_CHECK(kept.size() == same.size());
  std::unordered_set<std::int32_t> requested;
  for (const Event& event : offloaded.events())
    if (event.kind == EventKind::kFreeRequested) requested.insert(event.id);
  std::vector<FreePoint> free_points;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    const auto found = keep_pass.free_points.find(kept[i]);
    const std::int32_t storage = offloaded.index_of(same[i]);
    if (found == keep_pass.free_points.end() || !requested.contains(storage)) continue;
    for (const std::int32_t point : found->second) free_points.push_back({storage, point});
  }
  std::ranges::stable_sort(free_points, {}, &FreePoint::storage);
  return free_points;
}

/// Returns which storages of the program, which `offload_pass` has numbered, take the place of which older
/// ones. `before` is the pass just before that one; if it is not, there are none.
std::vector<Renewal> renewals_of(const RecordedPass& before, const RecordedPass& offload_pass,
                                 const NumberedPass& offloaded) {
  const std::vector<std::int64_t> made_before = allocations_of(before, NumberedPass(before));
  const std::vector<std::int64_t> made = allocations_of(offload_pass, offloaded);
  OFFPROF_CHECK(made_before.size() == made.size());
  const std::unordered_set<std::int64_t> is_made(made.begin(), made.end());
  std::unordered_map<std::int64_t, std::int32_t> new_storages;  // by the allocation of the pass before
  for (std::size_t i = 0; i < made.size(); ++i)
    new_storages.emplace(made_before[i], offloaded.index_of(made[i]));
  std::vector<Renewal> renewals;
  for (const RawEvent& event : offload_pass.events) {
    const bool is_older = event.kind == RawKind::kFree && !is_made.contains(event.id);
    if (!is_older || offload_pass.free_points.contains(event.id)) continue;
    const auto found = new_storages.find(event.id);
    if (found == new_storages.end()) continue;
    const Renewal renewal = {offloaded.index_of(event.id), found->second};
    if (same_memory(offloaded.storages()[renewal.old_storage], offloaded.storages()[renewal.new_storage]))
      renewals.push_back(renewal);
  }
  std::ranges::sort(renewals, {}, &Renewal::old_storage);
  return renewals;
}

/// Returns the old storages of the program's renewals by the allocations of `last` that made the new ones.
/// Empty if that pass has other allocations.
std::unordered_map<std::int64_t, std::int32_t> storages_renewed_by(const StepProgram& program,
                                                                   const RecordedPass& last) {
  std::unordered_map<std::int64_t, std::int32_t> renewed;
  const std::vector<std::int64_t> made = allocations_of(last, NumberedPass(last));
  std::vector<std::int32_t> storages;  // in the order of their allocations
  for (const Event& event : program.events)
    if (event.kind == EventKind::kAlloc) storages.push_back(event.id);
  if (storages.size() != made.size()) return renewed;
  std::unordered_map<std::int32_t, std::int32_t> old_storages;
  for (const Renewal& renewal : program.renewals)
    old_storages.emplace(renewal.new_storage, renewal.old_storage);
  for (std::size_t i = 0; i < made.size(); ++i)
    if (const auto found = old_storages.find(storages[i]); found != old_storages.end())
      renewed.emplace(made[i], found->second);
  return renewed;
}

/// Returns the modelled times of the program's own work by the family of the innermost operator.
std::vector<FamilyTime> family_times(const RecordedPass& pass) {
  std::vector<std::string_view> of_name;
  of_name.reserve(pass.names.size());
  for (const std::string& name : pass.names) of_name.push_back(family_of(name));
  std::map<std::string_view, Nanoseconds> times;
  // Families of the open operators, outermost first; the first is that of work outside of any operator.
  std::vector<std::string_view> families = {family_of("")};
  int hooks = 0;
  for (const RawEvent& event : pass.events) {
    if (hooks == 0) times[families.back()] += event.work.busy_ns;
    if (event.kind == RawKind::kOpBegin) families.push_back(of_name[event.id]);
    if (event.kind == RawKind::kOpEnd && families.size() > 1) families.pop_back();
    hooks += event.kind == RawKind::kHookBegin ? 1 : event.kind == RawKind::kHookEnd ? -1 : 0;
  }
  std::vector<FamilyTime> found;
  for (const auto& [family, time] : times)
    if (time > 0) found.push_back({std::string(family), time});
  return found;
}

}  // namespace

Bytes peak_of(const RecordedPass& pass) {
  Bytes live = pass.resident_bytes, peak = live;
  for (const RawEvent& event : pass.events) {
    if (event.kind == RawKind::kAlloc) live += event.value;
    if (event.kind == RawKind::kFree) live -= event.value;
    peak = std::max(peak, live);
  }
  return peak;
}

bool same_program(const RecordedPass& a, const RecordedPass& b) {
  const NumberedPass numbered_a(a);
  const NumberedPass numbered_b(b);
  return !first_difference(a, numbered_a, common_events(numbered_a), b, numbered_b,
                           common_events(numbered_b));
}

bool same_until_backward(const RecordedPass& a, const RecordedPass& b) {
  const NumberedPass numbered_a(a);
  const NumberedPass numbered_b(b);
  const std::vector<Event> events_a = common_events(numbered_a);
  const auto difference = first_difference(a, numbered_a, events_a, b, numbered_b, common_events(numbered_b));
  if (!difference) return true;
  const auto is_backward = [&](const Event& event) {
    return event.kind == EventKind::kPhase && a.names[event.id] == "backward";
  };
  const auto backward = std::ranges::find_if(events_a, is_backward);
  return backward != events_a.end() && static_cast<std::size_t>(backward - events_a.begin()) < *difference;
}

bool serves_dense_steps(const RecordedPass& offload_pass, const RecordedPass& dense_pass) {
  const auto has_escaped = [](const RecordedPass& pass) {
    return std::ranges::any_of(pass.escaped, [](char escaped) { return escaped != 0; });
  };
  return !has_escaped(offload_pass) && !has_escaped(dense_pass) && same_program(offload_pass, dense_pass);
}

void add_let_goes(StepProgram& program, const RecordedPass& offload_pass, const RecordedPass& next_pass) {
  if (!same_program(offload_pass, next_pass)) return;
  const NumberedPass offloaded(offload_pass), next(next_pass);
  std::unordered_map<std::int32_t, Renewal*> renewal_of;  // by new storage
  for (Renewal& renewal : program.renewals) renewal_of.emplace(renewal.new_storage, &renewal);
  const std::vector<std::int32_t> held = carried_storages(program, /*of_program=*/true);
  std::unordered_map<std::int64_t, Renewal*> held_as;  // by the allocation in `offload_pass`
  for (const std::int64_t allocation : allocations_of(offload_pass, offloaded))
    if (const std::int32_t storage = offloaded.index_of(allocation);
        std::ranges::find(held, storage) != held.end())
      held_as.emplace(allocation, renewal_of.at(storage));
  std::unordered_map<std::int32_t, std::int32_t> freed_at;  // index of the event by storage
  for (std::size_t i = 0; i < program.events.size(); ++i)
    if (program.events[i].kind == EventKind::kFree)
      freed_at.emplace(program.events[i].id, static_cast<std::int32_t>(i));
  auto event = program.events.begin();  // the next common one
  const auto skip_frees = [&] {
    event = std::find_if(event, program.events.end(), [](const Event& e) { return is_common(e.kind); });
  };
  skip_frees();
  for (const RawEvent& raw : next_pass.events) {
    const auto found = raw.kind == RawKind::kFree ? held_as.find(raw.id) : held_as.end();
    if (found != held_as.end())
      found->second->let_go = std::min(static_cast<std::int32_t>(event - program.events.begin()),
                                       freed_at.at(found->second->old_storage));
    const std::optional<EventKind> kind = next.kind_of(raw);
    if (!kind || !is_common(*kind)) continue;
    ++event;
    skip_frees();
  }
}

StepProgram build_program(std::span<const RecordedPass> keep_passes, const RecordedPass& offload_pass) {
  OFFPROF_CHECK(!keep_passes.empty());
  const NumberedPass offloaded(offload_pass);
  std::vector<std::vector<Between>> between;
  for (const RecordedPass& keep_pass : keep_passes) {
    const NumberedPass kept(keep_pass);
    check_same_program(keep_pass, kept, offload_pass, offloaded, keep_passes);
    between.push_back(work_between(keep_pass, kept));
  }

  StepProgram program;
  program.names = offload_pass.names;
  program.storages = offloaded.storages();
  program.events = offloaded.events();
  program.resident_bytes = offload_pass.resident_bytes;
  for (std::size_t tensor = 0; tensor < offload_pass.saved.size(); ++tensor) {
    if (offloaded.is_reload(offload_pass.saved[tensor].storage)) throw saves_after_backward();
    program.saved.push_back(offload_pass.saved[tensor].saved);
    program.saved.back().storage = offloaded.index_of(offload_pass.saved[tensor].storage);
    program.saved.back().escapes = offload_pass.escaped[tensor] != 0;
  }
  program.free_points = free_points_of(keep_passes.back(), offload_pass, offloaded);
  program.renewals = renewals_of(keep_passes.back(), offload_pass, offloaded);
  add_times(program, between, keep_passes.back().has_work);
  if (keep_passes.back().has_work) program.families = family_times(keep_passes.back());
  return program;
}

std::unordered_map<std::int64_t, std::int32_t> storages_replaced_by(const StepProgram& program,
                                                                    const RecordedPass& last) {
  std::unordered_map<std::int64_t, std::int32_t> replaced = storages_renewed_by(program, last);
  std::unordered_set<std::int32_t> is_replaced;
  for (const auto& [allocation, storage] : replaced) is_replaced.insert(storage);
  std::multimap<Bytes, std::int32_t> freed;  // storages of the same size in the order of their frees
  for (const Event& event : program.events) {
    if (event.kind != EventKind::kFree || is_replaced.contains(event.id)) continue;
    const ProgramStorage& storage = program.storages[event.id];
    if (is_older_than_step(storage.role)) freed.emplace(storage.bytes, event.id);
  }
  // Memory whose free was requested is free when the next step begins.
  std::unordered_set<std::int64_t> gone;
  for (const RawEvent& event : last.events)
    if (event.kind == RawKind::kFree || event.kind == RawKind::kFreeRequested) gone.insert(event.id);
  std::erase_if(replaced, [&](const auto& entry) { return gone.contains(entry.first); });
  for (const RawEvent& event : last.events) {
    if (event.kind != RawKind::kAlloc || gone.contains(event.id) || replaced.contains(event.id)) continue;
    const auto old = freed.lower_bound(event.value);
    if (old == freed.end() || old->first != event.value) continue;
    replaced.emplace(event.id, old->second);
    freed.erase(old);
  }
  return replaced;
}

std::vector<Staging> staging_of(const RecordedPass& pass, std::span<const CopyRecord> copies) {
  std::unordered_map<CopyId, Work> gathered;
  for (const CopyRecord& copy : copies)
    if (copy.staging != Work{}) gathered[static_cast<CopyId>(copy.tag)] = copy.staging;
  std::vector<Staging> staging;
  for (std::size_t tensor = 0; tensor < pass.saved.size(); ++tensor) {
    const auto found = gathered.find(pass.saved[tensor].copy);
    if (found == gathered.end()) continue;
    staging.push_back({static_cast<std::int32_t>(tensor), found->second.host_ns, found->second.stream_ns});
  }
  return staging;
}

}  // namespace offprof
