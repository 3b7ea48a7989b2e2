#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "engine/devices/virtual_gpu/state/virtual_time.h"
#include "simulator/clock/virtual_clock.h"

namespace offprof {
namespace {

constexpr Link kLink{.d2h = {.bytes_per_second = 1e9, .compute_ns_per_byte = 0.3},
                     .h2d = {.bytes_per_second = 1e9, .compute_ns_per_byte = 0.7},
                     .bidirectional_bytes_per_second = 1.3e9};

StreamId id(std::uintptr_t number) {
  return reinterpret_cast<StreamId>(number);
}

const std::array<StreamId, 3> kStreams = {nullptr, id(1), id(2)};
const std::array<EventId, 3> kEvents = {id(3), id(4), id(5)};
const StreamId kEngineStream = id(6);
const EventId kEngineEvent = id(7);

/// Something that a program does with the host or a stream. At kEnd an engine may delay the program.
struct Action {
  enum class Kind : std::uint8_t {
    kLaunch,
    kRun,
    kCollective,
    kCopyOut,
    kCopyIn,
    kRecord,
    kWait,
    kHostEvent,
    kHostStream,
    kQuery,
    kDevice,
    kEnd
  };
  Kind kind = Kind::kEnd;
  std::size_t stream = 0, event = 0;
  Nanoseconds duration_ns = 0;
};

std::vector<Action> random_actions() {
  return *rc::gen::container<std::vector<Action>>(rc::gen::build<Action>(
      rc::gen::set(&Action::kind, rc::gen::map(rc::gen::inRange(0, 12),
                                               [](int kind) { return static_cast<Action::Kind>(kind); })),
      rc::gen::set(&Action::stream, rc::gen::inRange<std::size_t>(0, kStreams.size())),
      rc::gen::set(&Action::event, rc::gen::inRange<std::size_t>(0, kEvents.size())),
      rc::gen::set(&Action::duration_ns, rc::gen::inRange<Nanoseconds>(0, 50))));
}

VirtualTime new_time() {
  VirtualTime time(kLink);
  for (const StreamId stream : kStreams)
    if (stream != nullptr) time.create_stream(stream, StreamKind::kNonBlocking);
  for (const EventId event : kEvents) time.create_event(event);
  time.create_stream(kEngineStream, StreamKind::kNonBlocking);
  time.create_event(kEngineEvent);
  return time;
}

void run(const Action& action, VirtualTime& time) {
  const StreamId stream = kStreams.at(action.stream);
  const EventId event = kEvents.at(action.event);
  switch (action.kind) {
    case Action::Kind::kLaunch:
      return time.advance_host(action.duration_ns);
    case Action::Kind::kRun:
      time.run(stream, action.duration_ns);
      return;
    case Action::Kind::kCollective:
      time.run(stream, action.duration_ns);
      return time.note_collective(stream, action.duration_ns);
    case Action::Kind::kCopyOut:
      time.copy(stream, CopyDirection::kD2h, action.duration_ns);
      return;
    case Action::Kind::kCopyIn:
      time.copy(stream, CopyDirection::kH2d, action.duration_ns);
      return;
    case Action::Kind::kRecord:
      return time.record(event, stream);
    case Action::Kind::kWait:
      return time.wait(stream, event);
    case Action::Kind::kHostEvent:
      return time.synchronise_event(event);
    case Action::Kind::kQuery:
      time.note_query(event, time.is_reached(event), 7);
      // The next query is then not of a loop, which would go on until the event is reached.
      return time.advance_host(1);
    case Action::Kind::kHostStream:
      return time.synchronise_stream(stream);
    case Action::Kind::kDevice:
      return time.synchronise_device();
    case Action::Kind::kEnd:
      break;
  }
}

/// Recording of the actions up to a kEnd.
struct Stretch {
  std::vector<StreamCommand> commands;
  Work work;
};

std::vector<Stretch> record(const std::vector<Action>& actions) {
  VirtualTime time = new_time();
  time.note_stream_commands(true);
  std::vector<Stretch> recorded;
  for (const Action& action : actions) {
    run(action, time);
    if (action.kind == Action::Kind::kEnd)
      recorded.push_back({time.take_stream_commands(), time.take_work()});
  }
  return recorded;
}

RC_GTEST_PROP(StreamCommands, ARecordingPredictsWhatTheComputeStreamReachesDespiteAnEngine, ()) {
  const std::vector<Action> actions = random_actions();
  const std::vector<Stretch> recorded = record(actions);
  VirtualTime time = new_time();
  VirtualClock clock(kLink, false, VirtualClock::Computes::kBesideHost);
  auto stretch = recorded.begin();
  for (const Action& action : actions) {
    run(action, time);
    if (action.kind != Action::Kind::kEnd) continue;
    for (const StreamCommand& command : stretch->commands) clock.run(command);
    clock.run(stretch->work);
    RC_ASSERT(clock.now() == std::max(time.host_time(), time.stream_time(nullptr)));
    ++stretch;
    const auto delay = *rc::gen::inRange<Nanoseconds>(0, 100);
    time.run(nullptr, delay);
    clock.run(Work{0, delay, delay, Work::kNoWait, delay});
    const auto copied = *rc::gen::inRange<Bytes>(0, 50);
    time.record(kEngineEvent, nullptr);
    time.wait(kEngineStream, kEngineEvent);
    time.copy(kEngineStream, CopyDirection::kD2h, copied);
    clock.copy_out(copied);
    const auto host_delay = *rc::gen::inRange<Nanoseconds>(0, 20);
    time.advance_host(host_delay);
    clock.run(Work{host_delay, 0, host_delay});
  }
}

RC_GTEST_PROP(StreamCommands, NotingThemChangesNoTime, ()) {
  VirtualTime noted = new_time(), other = new_time();
  noted.note_stream_commands(true);
  for (const Action& action : random_actions()) {
    run(action, noted);
    run(action, other);
    for (const StreamId stream : kStreams) RC_ASSERT(noted.stream_time(stream) == other.stream_time(stream));
    RC_ASSERT(noted.host_time() == other.host_time());
    RC_ASSERT(noted.exposed_collectives() == other.exposed_collectives());
  }
}

}  // namespace
}  // namespace offprof
