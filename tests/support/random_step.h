#pragma once

#include <rapidcheck.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include "tests/support/random_program.h"
#include "tests/support/sample_program.h"
#include "traces/model/calibration.h"
#include "traces/model/link.h"

namespace offprof {

/// Turns the computation of the step program into kernels that the host launches ahead of the device. After
/// each event whose index is in `waits_after`, the host waits for the kernels launched so far. For tests.
inline StepProgram beside_host(StepProgram program, const std::set<std::size_t>& waits_after = {}) {
  for (const Event& event : program.events) {
    const Nanoseconds launch = event.compute_ns / 3;
    Work work = {launch, event.compute_ns, launch + event.compute_ns, Work::kNoWait, event.compute_ns};
    if (waits_after.contains(program.work.size())) work = then(work, {0, 0, 0, 0});
    program.work.push_back(work);
  }
  program.work.push_back({5, 20, 25, Work::kNoWait, 20});
  return program;
}

/// Adds commands of two other streams: kernels, copies, records, and waits of streams and of the host.
inline void add_stream_commands(StepProgram& program) {
  using Kind = StreamCommand::Kind;
  std::int32_t points = 0;
  for (std::size_t e = 0; e < program.events.size(); ++e) {
    for (int left = *rc::gen::inRange(0, 4) - 2; left > 0; --left) {
      StreamCommand command{.event = static_cast<std::int32_t>(e)};
      command.kind = *rc::gen::element(Kind::kKernel, Kind::kCollective, Kind::kCopyOut, Kind::kCopyIn,
                                       Kind::kRecord, Kind::kWait, Kind::kHostWait, Kind::kDeviceWait);
      if (command.has_point() && points == 0) command.kind = Kind::kRecord;
      const auto launch_ns = *rc::gen::inRange<Nanoseconds>(0, 10),
                 kernel_ns = *rc::gen::inRange<Nanoseconds>(0, 30);
      command.before = {launch_ns, kernel_ns, launch_ns + kernel_ns, Work::kNoWait, kernel_ns};
      if (command.copies())
        command.bytes = *rc::gen::inRange<Bytes>(0, 200);
      else if (command.runs_kernel())
        command.duration_ns = *rc::gen::inRange<Nanoseconds>(0, 100);
      if (command.kind != Kind::kHostWait && command.kind != Kind::kDeviceWait)
        command.stream = *rc::gen::inRange(command.runs_kernel() ? 1 : 0, 3);
      if (command.kind == Kind::kRecord)
        command.point = points++;
      else if (command.has_point())
        command.point = *rc::gen::inRange(0, points);
      program.stream_commands.push_back(command);
    }
  }
}

/// Makes some frees wait for points that streams record anywhere in the step.
inline void add_free_points(StepProgram& program) {
  std::vector<std::int32_t> points;
  for (const StreamCommand& command : program.stream_commands)
    if (command.kind == StreamCommand::Kind::kRecord) points.push_back(command.point);
  if (points.empty()) return;
  for (Event& event : program.events) {
    if (event.kind != EventKind::kFree || *rc::gen::inRange(0, 3) > 0) continue;
    event.kind = EventKind::kFreeRequested;
    program.free_points.push_back({event.id, *rc::gen::elementOf(points)});
  }
  std::ranges::sort(program.free_points, {}, &FreePoint::storage);
}

/// Generates a chain of a few layers, on a device that computes on the host or beside it.
inline StepProgram random_chain(int most_layers, Bytes most_bytes) {
  StepProgram program = ChainSketch::program(*rc::gen::resize(most_layers, random_layers(most_bytes)));
  if (*rc::gen::arbitrary<bool>()) return program;
  std::set<std::size_t> waits;
  if (*rc::gen::arbitrary<bool>())
    for (std::size_t e = 0; e < program.events.size(); ++e)
      if (*rc::gen::inRange(0, 12) == 0) waits.insert(e);
  program = beside_host(std::move(program), waits);
  if (*rc::gen::arbitrary<bool>()) add_stream_commands(program);
  return program;
}

/// Inserts an event, which takes no work.
inline void insert_event(StepProgram& program, std::size_t index, const Event& event) {
  program.events.insert(program.events.begin() + static_cast<std::ptrdiff_t>(index), event);
  if (!program.work.empty())
    program.work.insert(program.work.begin() + static_cast<std::ptrdiff_t>(index), Work{});
  for (StreamCommand& command : program.stream_commands)
    if (command.event >= static_cast<std::int32_t>(index)) ++command.event;
}

/// Makes steps leave up to three saved tensors to the next one, which drops them somewhere. Some are also
/// held by the program, for a shorter time.
inline void carry_tensors(StepProgram& program, Bytes most_bytes) {
  for (int left = *rc::gen::inRange(0, 4); left > 0; --left) {
    const Bytes bytes = *rc::gen::inRange<Bytes>(1, most_bytes);
    const auto old_storage = static_cast<std::int32_t>(program.storages.size()),
               new_storage = old_storage + 1;
    program.storages.push_back({bytes, StorageRole::kResident});
    program.storages.push_back({bytes, StorageRole::kActivation});
    program.resident_bytes += bytes;
    SavedTensor saved;
    saved.storage = new_storage;
    saved.bytes = bytes;
    program.saved.push_back(saved);
    const auto tensor = static_cast<std::int32_t>(program.saved.size() - 1);
    insert_event(program, program.events.size(), {EventKind::kAlloc, new_storage, 0});
    insert_event(program, program.events.size(), {EventKind::kPack, tensor, 0});
    const bool is_programs = *rc::gen::arbitrary<bool>();
    if (!is_programs) insert_event(program, program.events.size(), {EventKind::kFree, new_storage, 0});
    const auto freed = *rc::gen::inRange<std::size_t>(0, program.events.size());
    insert_event(program, freed, {EventKind::kFree, old_storage, 0});
    for (Renewal& renewal : program.renewals)
      if (renewal.let_go >= static_cast<std::int32_t>(freed)) ++renewal.let_go;
    const auto let_go = is_programs ? *rc::gen::inRange(0, static_cast<std::int32_t>(freed) + 1) : -1;
    program.renewals.push_back({old_storage, new_storage, let_go});
  }
}

/// Generates one that no copy of a policy can delay, so that a larger stash or window takes no longer, apart
/// from slack_of_waits: see StreamCommand::meets_copies.
inline StepProgram random_chain_beside_copies(int most_layers, Bytes most_bytes) {
  StepProgram program = random_chain(most_layers, most_bytes);
  if (*rc::gen::arbitrary<bool>()) carry_tensors(program, most_bytes);
  std::erase_if(program.stream_commands, [](const StreamCommand& command) { return command.meets_copies(); });
  return program;
}

/// Generates a step program that runs on the host or on a device that computes beside it. Beside the host,
/// kernels are launched one by one, the host sometimes waits for the last one, and other streams may be used.
inline StepProgram random_program(Bytes most_bytes) {
  StepProgram program = ChainSketch::program(*random_layers(most_bytes));
  if (*rc::gen::arbitrary<bool>()) return program;
  for (Event& event : program.events) {
    const Nanoseconds launch_ns = *rc::gen::inRange(0, 20), kernel_ns = *rc::gen::inRange(0, 60);
    Work work = {launch_ns, kernel_ns, launch_ns + kernel_ns, Work::kNoWait, kernel_ns};
    if (*rc::gen::inRange(0, 20) == 0) work = then(work, {0, 0, 0, 0});
    program.work.push_back(work);
    event.compute_ns = 0;
  }
  if (*rc::gen::arbitrary<bool>()) add_stream_commands(program);
  return program;
}

/// Adds recompute steps for some of the contents, which read the tensor saved before, or nothing.
inline void add_recomputations(StepProgram& program) {
  program.recomputations.emplace();
  std::set<std::pair<std::int32_t, std::uint32_t>> contents;
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    const SavedTensor& saved = program.saved[i];
    const bool is_first = contents.emplace(saved.storage, saved.version).second;
    if (saved.movability != Movability::kMovable || !is_first || *rc::gen::inRange(0, 3) == 0) continue;
    Recomputation& made = program.recomputations->emplace_back();
    made.tensor = static_cast<std::int32_t>(i);
    made.op = "aten::op";
    if (i > 0 && *rc::gen::arbitrary<bool>()) made.sources = {made.tensor - 1};
    made.use.memory = {{program.storages[static_cast<std::size_t>(saved.storage)].bytes, -1}};
    const auto time = *rc::gen::inRange<Nanoseconds>(0, 60);
    made.use.compute_ns = time;
    if (!program.work.empty()) made.use.work = {time / 3, time, time / 3 + time, Work::kNoWait, time};
  }
}

/// Generates the costs of offloading. On a device that computes beside the host, a stall has no extra cost.
/// The slowdown of compute by copies is left out: with it, a larger stash or window may take longer.
inline EngineCosts random_costs(const StepProgram& program) {
  EngineCosts costs{.hook_ns = *rc::gen::inRange(0, 5),
                    .event_ns = *rc::gen::inRange(0, 5),
                    .reload_ns_per_byte = *rc::gen::inRange(0, 3) / 10.0};
  if (!program.work.empty()) return costs;
  if (*rc::gen::arbitrary<bool>()) costs.standstills = {{20, *rc::gen::inRange(0, 10)}, {60, 10}};
  return costs;
}

/// Generates costs in which neither a wait itself nor the compute after it takes extra time, so a larger
/// stash or window never takes longer: see slack_of_waits.
inline EngineCosts random_costs_but_waits(const StepProgram& program) {
  EngineCosts costs = random_costs(program);
  costs.event_ns = 0;
  costs.standstills.clear();
  return costs;
}

inline EngineCosts random_costs_with_slowdown(const StepProgram& program) {
  EngineCosts costs = random_costs(program);
  costs.slowdown_ns_per_byte = *rc::gen::inRange(0, 10) / 10.0;
  return costs;
}

/// Generates links from one that hides no copy to one that hides all copies, for tensors of some hundred
/// bytes.
inline Link random_link() {
  const auto direction = [] {
    return LinkDirection{static_cast<double>(*rc::gen::inRange(1, 2000)) * 1e7,
                         *rc::gen::inRange<Nanoseconds>(0, 40)};
  };
  return {direction(), direction(), *rc::gen::inRange<Nanoseconds>(0, 15)};
}

/// Makes all sizes so large that PyTorch's allocator rounds them to different degrees, and puts the step on a
/// device with that allocator. Returns the factor.
inline Bytes move_to_gpu(StepProgram& program) {
  constexpr Bytes kFactor = kMiB / 3;
  for (ProgramStorage& storage : program.storages) storage.bytes *= kFactor;
  for (SavedTensor& saved : program.saved) saved.bytes *= kFactor;
  program.resident_bytes = 0;
  program.allocator.emplace();
  return kFactor;
}

}  // namespace offprof
