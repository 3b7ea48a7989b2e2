#include "profiler/recording/program_builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "profiler/recorder/pass_sketch.h"
#include "traces/base/error.h"
#include "traces/format/program_io.h"

namespace offprof {
namespace {

using enum EventKind;
using testing::ElementsAre;
using testing::HasSubstr;

/// Builds a program from one pass, which also serves as keep pass.
StepProgram program_of(PassSketch& sketch) {
  const RecordedPass pass = sketch.finish();
  StepProgram program = build_program({&pass, 1}, pass);
  check_program(program, "program");
  return program;
}

std::vector<Event> without_times(std::vector<Event> events) {
  for (Event& event : events) event.compute_ns = 0;
  return events;
}

std::vector<Nanoseconds> times_of(const StepProgram& program) {
  std::vector<Nanoseconds> times;
  for (const Event& event : program.events) times.push_back(event.compute_ns);
  return times;
}

/// Saves and unpacks one tensor, which moves through the host if `offload` is true.
PassSketch one_tensor(bool offload) {
  PassSketch sketch;
  sketch.phase("forward").op_begin("aten::relu").alloc(11, 100).pack(11, offload ? 0 : -1).op_end();
  if (offload) sketch.free(11);
  sketch.op_begin("ReluBackward0");
  if (offload) sketch.hook_begin().unpack(0).reload(12, 100, 0).hook_end();
  if (!offload) sketch.unpack(0);
  sketch.node_end().op_end().release(0).free(offload ? 12 : 11).backward_end();
  return sketch;
}

TEST(BuildProgram, AnEscapedTensorOfASharedCopyIsReleasedWhenOnlyTheEngineHoldsIt) {
  PassSketch offload;
  offload.op_begin("aten::mul").alloc(1, 100).pack(1, 0).pack(1, 0).op_end().free(1);
  offload.unpack(1).reload(7, 100, 0).node_end({1}).release(1).free_unpacked(1);
  offload.unpack(0).node_end().release(0).free_unpacked(0).free(7);
  const std::vector<Event> events = without_times(program_of(offload).events);
  EXPECT_EQ(std::ranges::count(events, kFreeUnpacked, &Event::kind), 1);
  const auto free_unpacked = std::ranges::find(events, Event{kFreeUnpacked, 1});
  ASSERT_NE(free_unpacked, events.end());
  EXPECT_EQ(*std::prev(free_unpacked), (Event{EventKind::kRelease, 1}));
}

TEST(BuildProgram, RejectsAStepThatSavesAnUnpackedTensorAsIfItHadMadeIt) {
  PassSketch sketch;
  sketch.op_begin("aten::relu").alloc(11, 100).pack(11, 0).op_end().free(11);
  sketch.unpack(0).reload(12, 100, 0).pack(12, 1).node_end();
  const RecordedPass pass = sketch.finish();
  EXPECT_THROW(build_program({&pass, 1}, pass), Error);
}

// --- Order, storages, frees ---

TEST(BuildProgram, KeepsRequestsToFreeWhatTheStepFrees) {
  PassSketch sketch;
  sketch.request_free(5).request_free(6);  // of the last step; 6 stays in use
  sketch.alloc(1, 100).free_older(5, 40).request_free(1).alloc(2, 100).free(1).free(2);
  EXPECT_THAT(without_times(program_of(sketch).events),
              ElementsAre(Event{kFreeRequested, 0}, Event{kAlloc, 1}, Event{kFree, 0},
                          Event{kFreeRequested, 1}, Event{kAlloc, 2}, Event{kFree, 1}, Event{kFree, 2}));
}

TEST(BuildProgram, FindsWhichStorageTakesThePlaceOfThatOfThePassBefore) {
  PassSketch before, after;
  before.free_older(3, 100).free_older(4, 100).alloc(11, 100).alloc(12, 100).alloc(13, 100).free(12);
  after.free_older(13, 100).free_older(11, 100).alloc(21, 100).alloc(22, 100).alloc(23, 100).free(22);
  const RecordedPass keep_pass = before.finish(), offload_pass = after.finish();
  const StepProgram program = build_program({&keep_pass, 1}, offload_pass);
  // Older storages are numbered first, in the order of their allocations: 11 is 0, 13 is 1, 21 is 2.
  EXPECT_THAT(program.renewals, ElementsAre(Renewal{0, 2}, Renewal{1, 4}));
  EXPECT_THAT(storages_replaced_by(program, offload_pass),
              testing::UnorderedElementsAre(testing::Pair(21, 0), testing::Pair(23, 1)));
}

/// A pass that saves a tensor in storage `first`, drops what the pass before has left, and lets `first` go
/// on.
RecordedPass pass_that_keeps(std::int64_t first, std::int64_t older, bool drops_early) {
  PassSketch sketch;
  sketch.op_begin("aten::relu").alloc(first, 100).pack(first, 0).op_end();
  if (drops_early) sketch.free_older(older, 100);
  sketch.op_begin("aten::add").alloc(first + 1, 50).op_end();
  if (!drops_early) sketch.free_older(older, 100);
  sketch.free(first + 1);
  return sketch.finish();
}

TEST(BuildProgram, FindsWhereTheProgramLetsGoOfWhatSavedTensorsHoldLonger) {
  const RecordedPass keep_pass = pass_that_keeps(11, 5, false), offload_pass = pass_that_keeps(21, 11, false);
  StepProgram program = build_program({&keep_pass, 1}, offload_pass);
  ASSERT_EQ(program.renewals.size(), 1U);
  EXPECT_EQ(program.renewals[0].let_go, -1);
  add_let_goes(program, offload_pass, pass_that_keeps(31, 21, true));
  const Event& next = program.events[static_cast<std::size_t>(program.renewals[0].let_go)];
  EXPECT_EQ(next.kind, kOpBegin);
  EXPECT_EQ(program.names[next.id], "aten::add");
}

TEST(BuildProgram, FindsNoRenewalsIfThePassesDoNotFollowEachOther) {
  PassSketch sketch;
  sketch.free_older(5, 100).alloc(1, 100);
  EXPECT_THAT(program_of(sketch).renewals, testing::IsEmpty());
}

TEST(StoragesReplaced, AreNotThoseThatWaitToBeFree) {
  PassSketch sketch;
  sketch.free_older(5, 100).alloc(1, 100).request_free(1).alloc(2, 100);
  const RecordedPass pass = sketch.finish();
  const StepProgram program = build_program({&pass, 1}, pass);
  EXPECT_THAT(storages_replaced_by(program, pass), testing::UnorderedElementsAre(testing::Pair(2, 0)));
}

TEST(BuildProgram, DropsRequestsToFreeWhatTheEngineHolds) {
  PassSketch sketch;
  sketch.op_begin("aten::relu").alloc(1, 100).pack(1, 0).op_end().program_free(1);
  sketch.hook_begin().request_free(1).free(1).hook_end();
  sketch.unpack(0).node_end().release(0);
  EXPECT_EQ(std::ranges::count(program_of(sketch).events, kFreeRequested, &Event::kind), 0);
}

TEST(BuildProgram, NumbersStoragesInTheOrderOfTheirAllocation) {
  PassSketch sketch;
  sketch.alloc(70, 100).alloc(30, 200).free(70).free(30);
  const StepProgram program = program_of(sketch);
  EXPECT_THAT(program.storages, ElementsAre(ProgramStorage{100, StorageRole::kActivation},
                                            ProgramStorage{200, StorageRole::kActivation}));
  EXPECT_THAT(without_times(program.events),
              ElementsAre(Event{kAlloc, 0}, Event{kAlloc, 1}, Event{kFree, 0}, Event{kFree, 1}));
}

TEST(BuildProgram, LeavesOutNestedOperators) {
  PassSketch sketch;
  sketch.op_begin("aten::linear").op_begin("aten::addmm").op_end().op_end();
  const StepProgram program = program_of(sketch);
  ASSERT_THAT(without_times(program.events), ElementsAre(Event{kOpBegin, 0}, Event{kOpEnd, 0}));
  EXPECT_EQ(program.names[0], "aten::linear");
}

/// Returns a pass of two nested operators and a node with a hook.
RecordedPass pass_with_work() {
  PassSketch sketch;
  sketch.op_begin("aten::linear").op_begin("aten::addmm").op_end().op_end();
  sketch.op_begin("AddmmBackward0").hook_begin().hook_end().op_end();
  RecordedPass pass = sketch.finish();
  pass.has_work = true;
  return pass;
}

TEST(BuildProgram, SumsModelledTimesByTheFamilyOfTheInnermostOperator) {
  RecordedPass pass = pass_with_work();
  Nanoseconds busy_ns = 1;  // before each event: 1, 2, 4, ...
  for (RawEvent& event : pass.events) {
    event.work = {.stream_ns = busy_ns, .path_ns = busy_ns, .busy_ns = busy_ns};
    busy_ns *= 2;
  }
  // Outside of operators 1 + 16; in the node, but for the engine's part, 32 + 128.
  EXPECT_THAT(build_program({&pass, 1}, pass).families,
              ElementsAre(FamilyTime{"other", 1 + 16 + 32 + 128}, FamilyTime{"products", 2 + 4 + 8}));
  pass.has_work = false;
  EXPECT_THAT(build_program({&pass, 1}, pass).families, testing::IsEmpty());
}

TEST(BuildProgram, GivesCommandsOfStreamsToTheNextEventUnlessTheEngineGaveThem) {
  RecordedPass pass = pass_with_work();
  for (RawEvent& event : pass.events) event.work = {.host_ns = 1, .path_ns = 1};
  const auto kernel = [](std::int32_t event, Nanoseconds duration) {
    return StreamCommand{.stream = 1, .duration_ns = duration, .event = event, .before = {10, 0, 10}};
  };
  pass.stream_commands = {kernel(2, 100), kernel(6, 200), kernel(7, 300)};  // in addmm, in the hook, after it
  const StepProgram program = build_program({&pass, 1}, pass);
  ASSERT_EQ(program.stream_commands.size(), 2U);
  EXPECT_EQ(program.stream_commands[0].duration_ns, 100);
  EXPECT_EQ(program.stream_commands[0].event, 1);                   // the end of linear
  EXPECT_EQ(program.stream_commands[0].before, (Work{11, 0, 11}));  // the beginning of addmm is no event
  EXPECT_EQ(program.work[1], (Work{2, 0, 2}));
  EXPECT_EQ(program.stream_commands[1].duration_ns, 300);
  EXPECT_EQ(program.stream_commands[1].event, 3);
}

TEST(BuildProgram, TakesThePointsOfFreesFromThePassWithNothingOffloaded) {
  PassSketch offloaded, kept;
  offloaded.alloc(1, 100).request_free(1).alloc(2, 100).free(1).free(2);
  kept.alloc(11, 100).request_free(11).alloc(12, 100).free(12);  // 11 waits for longer
  RecordedPass keep_pass = kept.finish();
  keep_pass.has_work = true;
  keep_pass.stream_commands = {{.kind = StreamCommand::Kind::kRecord, .stream = 1, .point = 0, .event = 0},
                               {.kind = StreamCommand::Kind::kRecord, .stream = 1, .point = 1, .event = 1}};
  keep_pass.free_points = {{11, {1}}, {12, {0}}};  // the free of 12 is not requested in the other pass
  const StepProgram program = build_program({&keep_pass, 1}, offloaded.finish());
  EXPECT_EQ(program.free_points, (std::vector<FreePoint>{{0, 0}}));
  ASSERT_EQ(program.stream_commands.size(), 1U);
  EXPECT_EQ(program.stream_commands[0].event, 2);  // before the second allocation
}

TEST(BuildProgram, CopiesTheResidentBytesOfThePass) {
  PassSketch sketch(4096);
  EXPECT_EQ(program_of(sketch).resident_bytes, 4096);
}

TEST(BuildProgram, TakesMediansOfTimesAndTheirSpread) {
  std::vector<RecordedPass> keep;
  for (const Nanoseconds time : {50, 10, 30, 20, 40}) {
    PassSketch sketch;
    sketch.compute(time).alloc(1, 100);
    keep.push_back(sketch.finish());
  }
  const StepProgram program = build_program(keep, keep.front());
  EXPECT_THAT(times_of(program), ElementsAre(30));
  EXPECT_THAT(program.compute_spread_ns, ElementsAre(20));
}

TEST(BuildProgram, SeparatesReloads) {
  const RecordedPass keep = one_tensor(false).finish();
  const RecordedPass offload = one_tensor(true).finish();
  const StepProgram program = build_program({&keep, 1}, offload);
  EXPECT_THAT(program.storages, ElementsAre(ProgramStorage{100, StorageRole::kActivation}));
  EXPECT_THAT(without_times(program.events),
              ElementsAre(Event{kPhase, 0}, Event{kOpBegin, 1}, Event{kAlloc, 0}, Event{kPack, 0},
                          Event{kOpEnd, 1}, Event{kFree, 0}, Event{kOpBegin, 2}, Event{kUnpack, 0},
                          Event{kNodeEnd, 0}, Event{kOpEnd, 2}, Event{kRelease, 0}, Event{kBackwardEnd, 0}));
}

TEST(BuildProgram, TakesFreesFromTheOffloadPass) {
  PassSketch keep, offload;
  keep.alloc(1, 100).pack(1).alloc(2, 50).release(0).free(1);
  offload.alloc(1, 100).pack(1, 0).free(1).alloc(2, 50).release(0);
  const RecordedPass keep_pass = keep.finish();
  EXPECT_THAT(
      without_times(build_program({&keep_pass, 1}, offload.finish()).events),
      ElementsAre(Event{kAlloc, 0}, Event{kPack, 0}, Event{kFree, 0}, Event{kAlloc, 1}, Event{kRelease, 0}));
}

TEST(BuildProgram, FindsResidentsThatTheStepFrees) {
  PassSketch sketch(500);
  sketch.alloc(9, 10).free_older(3, 300);
  const StepProgram program = program_of(sketch);
  EXPECT_THAT(program.storages, ElementsAre(ProgramStorage{300, StorageRole::kResident},
                                            ProgramStorage{10, StorageRole::kActivation}));
  EXPECT_EQ(program.events.back().kind, kFree);
  EXPECT_EQ(program.events.back().id, 0);
}

TEST(BuildProgram, FindsTheRolesOfSavedResidents) {
  RawSaved weight;
  weight.storage = 5;
  weight.storage_bytes = 64;
  weight.role = StorageRole::kParameter;
  weight.saved.movability = Movability::kParameter;
  weight.saved.op = 0;
  PassSketch sketch(64);
  sketch.op_begin("aten::linear").pack(weight).op_end();
  const StepProgram program = program_of(sketch);
  EXPECT_THAT(program.storages, ElementsAre(ProgramStorage{64, StorageRole::kParameter}));
  EXPECT_EQ(program.saved[0].storage, 0);
}

TEST(BuildProgram, AGatheredParameterIsAStorageOfTheStep) {
  PassSketch sketch;
  sketch.op_begin("c10d::allgather_").gather(5, 64).alloc(6, 32).op_end().free(5).free(6);
  EXPECT_THAT(program_of(sketch).storages, ElementsAre(ProgramStorage{64, StorageRole::kGathered},
                                                       ProgramStorage{32, StorageRole::kActivation}));
}

TEST(BuildProgram, MemoryOutsideTheDeviceIsAStorageWithoutBytes) {
  RawSaved elsewhere;
  elsewhere.saved.movability = Movability::kUnsupportedLayout;
  PassSketch sketch;
  sketch.op_begin("aten::to_sparse").pack(elsewhere).op_end();
  EXPECT_THAT(program_of(sketch).storages, ElementsAre(ProgramStorage{0, StorageRole::kResident}));
}

/// A saved input of 64 bytes, which that storage holds.
RawSaved input_in(std::int64_t storage) {
  RawSaved input;
  input.storage = storage;
  input.storage_bytes = input.saved.bytes = 64;
  input.role = StorageRole::kInput;
  input.saved.movability = Movability::kInput;
  return input;
}

TEST(BuildProgram, AnInputThatIsMadeInTheStepIsAStorageOfTheStep) {
  PassSketch sketch;
  sketch.op_begin("aten::linear").alloc(5, 64).pack(input_in(5)).op_end().free(5);
  const StepProgram program = program_of(sketch);
  EXPECT_THAT(program.storages, ElementsAre(ProgramStorage{64, StorageRole::kActivation}));
  EXPECT_EQ(program.saved[0].movability, Movability::kInput);
  EXPECT_THAT(without_times(program.events), testing::Contains(Event{kAlloc, 0}));
}

/// A node of compiled code unpacks all of its inputs at its beginning, and frees each after its last use.
TEST(BuildProgram, ANodeLetsGoOfAnInputThatIsFreedBeforeItsEnd) {
  PassSketch sketch(64);
  sketch.op_begin("CompiledFunction").pack(input_in(5)).op_end().op_begin("CompiledFunctionBackward");
  sketch.unpack(0).release(0).free_older(5, 64).alloc(6, 32).node_end().op_end();
  const std::vector<Event> events = without_times(program_of(sketch).events);
  const auto let_go = std::ranges::find(events, Event{kFreeUnpacked, 0});
  ASSERT_NE(let_go, events.end());
  EXPECT_EQ(*std::next(let_go), (Event{kFree, 0}));
  EXPECT_EQ(std::ranges::count(events, kFreeUnpacked, &Event::kind), 1);
}

TEST(BuildProgram, WhatBackwardSavesAgainHasNoBytesOfItsOwn) {
  RawSaved again;
  again.saved.movability = Movability::kUnpacked;
  PassSketch sketch;
  sketch.op_begin("aten::relu").alloc(11, 100).pack(11, 0).op_end().free(11);
  sketch.unpack(0)
      .reload(12, 100, 0)
      .pack(again)
      .node_end({0})
      .release(1)
      .release(0)
      .free_unpacked(0)
      .free(12);
  const StepProgram program = program_of(sketch);
  EXPECT_EQ(program.storages[program.saved[1].storage], (ProgramStorage{0, StorageRole::kResident}));
  EXPECT_TRUE(program.saved[0].escapes);
}

TEST(BuildProgram, SavedTensorsThatShareAnAllocationShareAStorage) {
  PassSketch sketch;
  sketch.op_begin("aten::mul").alloc(8, 100).pack(8).pack(8).op_end();
  const StepProgram program = program_of(sketch);
  EXPECT_EQ(program.saved[0].storage, program.saved[1].storage);
}

// --- Storages that the engine holds longer than the model ---

TEST(BuildProgram, TheModelsFreeIsAtItsLastReference) {
  PassSketch sketch;
  sketch.phase("forward").alloc(1, 100).pack(1, 0).program_free(1).alloc(2, 50);
  sketch.hook_begin().free(1).hook_end().free(2);
  EXPECT_THAT(without_times(program_of(sketch).events),
              ElementsAre(Event{kPhase, 0}, Event{kAlloc, 0}, Event{kPack, 0}, Event{kFree, 0},
                          Event{kAlloc, 1}, Event{kFree, 1}));
}

TEST(BuildProgram, TheModelsFreeIsTheLastIfItReacquiresTheStorage) {
  PassSketch sketch;
  sketch.phase("forward").alloc(1, 100).pack(1, 0).program_free(1).alloc(2, 50);
  sketch.unpack(0).hook_begin().node_end().hook_end().free(1).free(2);
  EXPECT_THAT(without_times(program_of(sketch).events),
              ElementsAre(Event{kPhase, 0}, Event{kAlloc, 0}, Event{kPack, 0}, Event{kAlloc, 1},
                          Event{kUnpack, 0}, Event{kNodeEnd, 0}, Event{kFree, 0}, Event{kFree, 1}));
}

// --- Tensors that escape their node ---

TEST(BuildProgram, AnEscapedTensorIsReleasedWhenItsReloadIsFreed) {
  PassSketch keep, offload;
  keep.op_begin("aten::view").alloc(1, 100).pack(1).op_end().unpack(0).node_end().release(0).alloc(2, 10);
  offload.op_begin("aten::view").alloc(1, 100).pack(1, 0).op_end().free(1);
  offload.unpack(0).reload(7, 100, 0).node_end({0}).release(0).alloc(2, 10).free(7);
  const RecordedPass keep_pass = keep.finish();
  const StepProgram program = build_program({&keep_pass, 1}, offload.finish());
  check_program(program, "program");
  EXPECT_TRUE(program.saved[0].escapes);
  EXPECT_EQ(program.events.back().kind, kFreeUnpacked);
  EXPECT_EQ(program.events.back().id, 0);
}

TEST(BuildProgram, ReleasesOnlyTheEscapingUserOfACopy) {
  PassSketch offload;
  offload.op_begin("aten::mul").alloc(1, 100).pack(1, 0).pack(1, 0).op_end().free(1);
  offload.unpack(1).reload(7, 100, 0).node_end({1}).unpack(0).node_end().release(0).release(1).free(7);
  const StepProgram program = program_of(offload);
  EXPECT_FALSE(program.saved[0].escapes);
  EXPECT_TRUE(program.saved[1].escapes);
  EXPECT_EQ(without_times(program.events).back(), (Event{kFreeUnpacked, 1}));
}

/// Saves a parameter, which moves only if every tensor is copied densely.
RecordedPass saves_a_parameter(bool moves, const std::vector<SavedId>& escaped) {
  RawSaved weight;
  weight.storage = 5;
  weight.storage_bytes = 64;
  weight.role = StorageRole::kParameter;
  weight.copy = moves ? 0 : -1;
  PassSketch sketch(64);
  sketch.op_begin("aten::mm").pack(weight).op_end().unpack(0);
  if (moves) sketch.reload(7, 64, 0);
  sketch.node_end(escaped).release(0).alloc(8, 10);
  return sketch.finish();
}

TEST(BuildProgram, ServesDenseStepsUnlessATensorEscapes) {
  const RecordedPass offload = saves_a_parameter(false, {});
  EXPECT_TRUE(serves_dense_steps(offload, saves_a_parameter(true, {})));
  EXPECT_FALSE(serves_dense_steps(offload, saves_a_parameter(true, {0})));
}

/// A node that unpacked a tensor, as autograd runs it: after the node's own part it shapes the gradients.
PassSketch node_with_fitting(bool fits_gradients) {
  PassSketch sketch;
  sketch.op_begin("aten::mul").alloc(1, 100).pack(1).op_end();
  sketch.op_begin("MulBackward0").op_begin("MulBackward0").unpack(0).alloc(2, 100).op_end();
  if (fits_gradients) sketch.op_begin("aten::sum").alloc(3, 10).op_end();
  sketch.node_end().op_end().release(0).free(1);
  return sketch;
}

TEST(BuildProgram, ANodesTensorIsReleasedBeforeGradientsAreShaped) {
  PassSketch sketch = node_with_fitting(true);
  const StepProgram program = program_of(sketch);
  check_program(program, "program");
  const std::vector<Event> events = without_times(program.events);
  const auto free_unpacked = std::ranges::find(events, kFreeUnpacked, &Event::kind);
  ASSERT_NE(free_unpacked, events.end());
  EXPECT_EQ(free_unpacked->id, 0);
  EXPECT_EQ(*std::prev(free_unpacked), (Event{kAlloc, 1}));
  EXPECT_EQ(*std::next(free_unpacked), (Event{kAlloc, 2}));
}

TEST(BuildProgram, ANodesTensorIsReleasedWithItIfNothingIsAllocatedAfterItsOwnPart) {
  PassSketch sketch = node_with_fitting(false);
  const StepProgram program = program_of(sketch);
  EXPECT_EQ(std::ranges::count(program.events, kFreeUnpacked, &Event::kind), 0);
}

// --- Times ---

TEST(BuildProgram, AnEventHasTheTimeSinceTheEventBefore) {
  PassSketch sketch;
  sketch.compute(5).op_begin("aten::relu").compute(20).alloc(1, 8).compute(300).op_end();
  EXPECT_THAT(times_of(program_of(sketch)), ElementsAre(5, 20, 300));
}

TEST(BuildProgram, TimeBeforeAFreeCountsForTheNextCommonEvent) {
  PassSketch sketch;
  sketch.alloc(1, 8).compute(10).free(1).compute(7).alloc(2, 8);
  EXPECT_THAT(times_of(program_of(sketch)), ElementsAre(0, 0, 17));
}

TEST(BuildProgram, SubtractsTheTimeOfHooks) {
  PassSketch sketch;
  sketch.op_begin("aten::relu").alloc(1, 8);
  sketch.compute(10).hook_begin().compute(1000).pack(1).compute(2000).hook_end().compute(3).op_end();
  EXPECT_THAT(times_of(program_of(sketch)), ElementsAre(0, 0, 10, 3));
}

TEST(BuildProgram, UsesTheTimesOfAPassThatReloads) {
  PassSketch sketch;
  sketch.phase("forward").alloc(11, 100).pack(11, 0).free(11);
  sketch.compute(5).unpack(0).hook_begin().alloc(20, 100).reload(12, 100, 0).free(20).hook_end();
  sketch.compute(30).node_end().compute(7).release(0).free(12).compute(3).backward_end();
  const StepProgram program = program_of(sketch);
  ASSERT_THAT(without_times(program.events),
              ElementsAre(Event{kPhase, 0}, Event{kAlloc, 0}, Event{kPack, 0}, Event{kFree, 0},
                          Event{kUnpack, 0}, Event{kNodeEnd, 0}, Event{kRelease, 0}, Event{kBackwardEnd, 0}));
  EXPECT_THAT(times_of(program), ElementsAre(0, 0, 0, 0, 5, 30, 7, 3));
}

TEST(BuildProgram, SubtractsTheTimeOfNestedHooks) {
  PassSketch sketch;
  sketch.hook_begin().hook_begin().compute(100).hook_end().compute(200).hook_end().compute(3).alloc(1, 8);
  EXPECT_THAT(times_of(program_of(sketch)), ElementsAre(3));
}

TEST(BuildProgram, SubtractsTheTimeOfRecording) {
  PassSketch sketch;
  sketch.alloc(1, 8).noting_took(50).compute(7).alloc(2, 8);
  EXPECT_THAT(times_of(program_of(sketch)), ElementsAre(0, 7));
}

TEST(BuildProgram, TakesTheMedianOverTheKeepPasses) {
  std::vector<RecordedPass> passes;
  for (const Nanoseconds duration : {900, 10, 30}) {
    PassSketch sketch;
    passes.push_back(sketch.compute(duration).alloc(1, 8).compute(1000 - duration).alloc(2, 8).finish());
  }
  EXPECT_THAT(times_of(build_program(passes, passes.front())), ElementsAre(30, 970));
}

TEST(BuildProgram, IgnoresTimesOfTheOffloadPass) {
  PassSketch keep, offload;
  const RecordedPass keep_pass = keep.compute(10).alloc(1, 8).finish();
  EXPECT_THAT(times_of(build_program({&keep_pass, 1}, offload.compute(999).alloc(1, 8).finish())),
              ElementsAre(10));
}

// --- Different passes ---

/// Returns the error message for two different passes.
std::string difference(PassSketch& keep, PassSketch& offload) {
  const RecordedPass keep_pass = keep.finish();
  const RecordedPass offload_pass = offload.finish();
  EXPECT_FALSE(same_program(keep_pass, offload_pass));
  try {
    build_program({&keep_pass, 1}, offload_pass);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.hint(), HasSubstr("shapes"));
    return error.what();
  }
  ADD_FAILURE() << "the passes differ";
  return {};
}

TEST(BuildProgram, NamesTheFirstDifferentAllocation) {
  PassSketch keep, offload;
  keep.op_begin("aten::nonzero").alloc(1, 8).op_end();
  offload.op_begin("aten::nonzero").alloc(1, 16).op_end();
  EXPECT_THAT(
      difference(keep, offload),
      HasSubstr(
          "near aten::nonzero, an allocation of 8 bytes in one pass, an allocation of 16 bytes in another"));
}

TEST(BuildProgram, NamesTheFirstDifferentOperator) {
  PassSketch keep, offload;
  keep.op_begin("aten::relu").op_end().op_begin("aten::mul").op_end();
  offload.op_begin("aten::relu").op_end().op_begin("aten::add").op_end();
  EXPECT_THAT(difference(keep, offload),
              HasSubstr("near aten::relu, aten::mul in one pass, aten::add in another"));
}

TEST(BuildProgram, ReportsAPassThatEndsEarly) {
  PassSketch keep, offload;
  keep.op_begin("aten::relu").op_end();
  offload.op_begin("aten::relu").op_end().op_begin("aten::add").op_end();
  EXPECT_THAT(difference(keep, offload), HasSubstr("nothing more in one pass, aten::add in another"));
}

TEST(BuildProgram, NamesTheEventOfATensorThatDiffers) {
  PassSketch keep, offload;
  keep.op_begin("aten::relu").alloc(1, 8).pack(1).op_end().unpack(0);
  offload.op_begin("aten::relu").alloc(1, 8).pack(1).op_end().release(0);
  EXPECT_THAT(
      difference(keep, offload),
      HasSubstr("the unpack of saved tensor 0 in one pass, the release of saved tensor 0 in another"));
}

TEST(BuildProgram, ADifferenceBeforeTheFirstOperatorIsAtTheBeginning) {
  PassSketch keep, offload;
  keep.alloc(1, 8);
  offload.alloc(1, 9);
  EXPECT_THAT(difference(keep, offload), HasSubstr("near the beginning of the step"));
}

TEST(BuildProgram, RejectsTensorsOfOtherShapes) {
  const auto pass_of = [](std::int64_t rows) {
    PassSketch sketch;
    sketch.op_begin("aten::relu").alloc(11, 100);
    RawSaved raw;
    raw.storage = 11;
    raw.storage_bytes = 100;
    raw.saved.layout = TensorLayout{"float32", {rows, 1}, {1, 1}};
    sketch.pack(raw).op_end().free(11);
    return sketch.finish();
  };
  const RecordedPass keep = pass_of(20), offload = pass_of(25);
  EXPECT_THROW(build_program({&keep, 1}, offload), Error);
}

TEST(BuildProgram, ComparesEveryKeepPass) {
  PassSketch first, second, offload;
  const std::vector<RecordedPass> keep_passes = {first.alloc(1, 8).finish(), second.alloc(1, 9).finish()};
  EXPECT_THROW(build_program(keep_passes, offload.alloc(1, 8).finish()), Error);
}

TEST(SameProgram, IgnoresTimesFreesAndReloads) {
  EXPECT_TRUE(same_program(one_tensor(false).finish(), one_tensor(true).compute(1000).finish()));
}

TEST(SameProgram, IgnoresAllocationIds) {
  PassSketch one, other;
  EXPECT_TRUE(same_program(one.alloc(1, 8).finish(), other.alloc(900, 8).finish()));
}

TEST(SameProgram, DetectsThatOnePassIsLonger) {
  PassSketch one, other;
  EXPECT_FALSE(same_program(one.alloc(1, 8).finish(), other.alloc(1, 8).alloc(2, 8).finish()));
}

}  // namespace
}  // namespace offprof
