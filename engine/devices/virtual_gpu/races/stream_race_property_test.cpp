#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "engine/devices/virtual_gpu/races/stream_races.h"

namespace offprof {
namespace {

constexpr int kStreams = 4, kBlocks = 3, kPieces = 2, kEvents = 5;
constexpr int kMostEvents = 4096;
constexpr int kMostBytes = 1000;

enum class CallKind {
  kKernel,
  kCopyOut,
  kCopyIn,
  kRecord,
  kWait,
  kHostWaits,
  kHostWaitsForStream,
  kAllocate,
  kFree
};

/// A call of the host. Each kind uses only some of the numbers.
struct Call {
  CallKind kind{};
  int stream = 0, event = 0, block = 0, piece = 0;
  int offset = 0, bytes = 1;

  bool is_copy() const { return kind == CallKind::kCopyOut || kind == CallKind::kCopyIn; }
};

using StepProgram = std::vector<Call>;

/// A broken rule and the two calls that broke it.
struct Finding {
  std::string what;
  int first = 0, second = 0;

  auto operator<=>(const Finding&) const = default;
};

using Findings = std::set<Finding>;

/// The calls that happen before each call, found by following all edges.
class Graph {
 public:
  void add(const std::vector<int>& direct) {
    std::vector<bool> before(before_.size());
    for (const int call : direct) {
      before[static_cast<std::size_t>(call)] = true;
      const std::vector<bool>& more = before_[static_cast<std::size_t>(call)];
      for (std::size_t i = 0; i < more.size(); ++i) before[i] = before[i] || more[i];
    }
    before_.push_back(std::move(before));
  }
  bool before(int first, int second) const {
    return first < second && before_[static_cast<std::size_t>(second)][static_cast<std::size_t>(first)];
  }

 private:
  std::vector<std::vector<bool>> before_;
};

/// Reference implementation of the rules, which examines every pair of calls.
class Reference {
 public:
  /// Returns true if the call is valid here: blocks are used only after they are handed out, events only
  /// after a record.
  bool allows(const Call& call) const {
    if (call.kind == CallKind::kAllocate) return !owners_.contains(call.block);
    if (call.kind == CallKind::kFree || call.is_copy()) return owners_.contains(call.block);
    const bool uses_event = call.kind == CallKind::kWait || call.kind == CallKind::kHostWaits;
    return !uses_event || records_.contains(call.event);
  }

  /// Adds the call and returns the rules that it breaks.
  Findings add(const Call& call) {
    const int index = static_cast<int>(calls_.size());
    const std::vector<int> by_streams = edges(call);
    std::vector<int> all = by_streams;
    if (last_host_ >= 0) all.push_back(last_host_);
    ordered_.add(all);
    waited_.add(by_streams);
    calls_.push_back(call);
    Findings found =
        is_needless(index) ? Findings{{"a wait orders nothing", records_.at(call.event), index}} : Findings{};
    for (int earlier = 0; earlier < index; ++earlier) hold_against(earlier, index, found);
    take_effect(call, index);
    return found;
  }

  Findings peek(const Call& call) const {
    Reference copy = *this;
    return copy.add(call);
  }

  int owner(int block) const { return owners_.at(block).stream; }
  const Call& call(int index) const { return calls_[static_cast<std::size_t>(index)]; }

 private:
  struct Owner {
    int stream = 0;
    int since = 0;
    bool is_touched = false;
  };

  std::vector<int> edges(const Call& call) const {
    std::vector<int> before;
    const bool of_block = call.kind == CallKind::kFree;
    const int stream = of_block ? owner(call.block) : call.stream;
    if (call.kind != CallKind::kHostWaits && last_.contains(stream)) before.push_back(last_.at(stream));
    if (call.kind == CallKind::kWait || call.kind == CallKind::kHostWaits)
      before.push_back(records_.at(call.event));
    return before;
  }

  /// Returns true if the wait orders nothing. Ignores the wait's own edge.
  bool is_needless(int index) const {
    const Call& wait = call(index);
    if (wait.kind != CallKind::kWait) return false;
    const int record = records_.at(wait.event);
    const auto last = last_.find(wait.stream);
    return last != last_.end() && (last->second == record || waited_.before(record, last->second));
  }

  void hold_against(int first, int second, Findings& found) {
    if (ordered_.before(first, second)) return;
    const Call& early = call(first);
    const Call& late = call(second);
    if (late.is_copy() && early.kind == CallKind::kKernel) kernel_and_copy(first, second, found);
    if (late.is_copy() && early.is_copy()) two_copies(first, second, found);
    const bool is_hand = late.kind == CallKind::kAllocate || late.kind == CallKind::kFree;
    if (is_hand && early.is_copy() && early.block == late.block && reported_.insert(first).second) {
      found.insert({late.kind == CallKind::kFree ? "a block is freed while a copy may still access it"
                                                 : "a block is allocated while a copy may still access it",
                    first, second});
    }
  }

  void kernel_and_copy(int kernel, int copy, Findings& found) const {
    const Owner& owner = owners_.at(call(copy).block);
    if (owner.stream != call(kernel).stream) return;
    const bool is_since = kernel > owner.since;
    if (call(copy).kind == CallKind::kCopyOut && is_since) {
      found.insert({"a copy reads a block that a stream may still write", kernel, copy});
    } else if (call(copy).kind == CallKind::kCopyIn && (!is_since || owner.is_touched)) {
      found.insert({"a copy writes a block whose memory a stream may still use", kernel, copy});
    }
  }

  void two_copies(int first, int second, Findings& found) const {
    const Call& early = call(first);
    const Call& late = call(second);
    if (early.offset >= late.offset + late.bytes || late.offset >= early.offset + early.bytes) return;
    const bool out = early.kind == CallKind::kCopyOut || late.kind == CallKind::kCopyOut;
    const bool in = early.kind == CallKind::kCopyIn || late.kind == CallKind::kCopyIn;
    if ((early.block == late.block && in) || (early.piece == late.piece && out)) {
      found.insert({"two copies of the same memory are not ordered", first, second});
    }
  }

  void take_effect(const Call& call, int index) {
    if (call.kind == CallKind::kRecord) records_[call.event] = index;
    if (call.kind == CallKind::kAllocate) owners_[call.block] = {call.stream, index, false};
    if (call.kind == CallKind::kFree) owners_.erase(call.block);
    if (call.is_copy()) owners_.at(call.block).is_touched = true;
    if (call.kind == CallKind::kHostWaits || call.kind == CallKind::kHostWaitsForStream) last_host_ = index;
    if (call.is_copy() || call.kind == CallKind::kKernel || call.kind == CallKind::kRecord ||
        call.kind == CallKind::kWait) {
      last_[call.stream] = index;
    }
  }

  StepProgram calls_;
  Graph ordered_, waited_;
  std::map<int, int> last_;     ///< by stream
  std::map<int, int> records_;  ///< by event
  std::map<int, Owner> owners_;
  std::set<int> reported_;
  int last_host_ = -1;
};

/// Memory and handles: only their addresses matter.
constexpr std::array<char, kMostEvents + kStreams> kHandles{};
constexpr std::array<char, kBlocks * kMostBytes> kDevice{};
constexpr std::array<char, kPieces * kMostBytes> kHost{};

StreamId stream_id(int stream) {
  return &kHandles[static_cast<std::size_t>(kMostEvents + stream)];
}
EventId event_id(int event) {
  return &kHandles[static_cast<std::size_t>(event)];
}
const char* block_address(int block) {
  return kDevice.data() + block * kMostBytes;
}

void make(StreamRace& order, const Call& call) {
  const CopyEnd device{block_address(call.block) + call.offset, MemoryPlace::kDevice};
  const CopyEnd host{kHost.data() + call.piece * kMostBytes + call.offset, MemoryPlace::kPinned};
  switch (call.kind) {
    case CallKind::kKernel:
      return order.kernel(stream_id(call.stream), "k");
    case CallKind::kCopyOut:
      return order.copy(stream_id(call.stream), host, device, call.bytes);
    case CallKind::kCopyIn:
      return order.copy(stream_id(call.stream), device, host, call.bytes);
    case CallKind::kRecord:
      return order.event_recorded(event_id(call.event), stream_id(call.stream));
    case CallKind::kWait:
      return order.stream_waits(stream_id(call.stream), event_id(call.event));
    case CallKind::kHostWaits:
      return order.event_synchronised(event_id(call.event));
    case CallKind::kHostWaitsForStream:
      return order.stream_synchronised(stream_id(call.stream));
    case CallKind::kAllocate:
      return order.block_allocated(block_address(call.block), kMostBytes, stream_id(call.stream));
    case CallKind::kFree:
      return order.block_freed(block_address(call.block));
  }
}

/// Returns the number of the call at a site. The site's operator holds it.
int call_of(const std::string& site) {
  return std::stoi(site.substr(site.find('#') + 1));
}

Findings checked(const StepProgram& program) {
  StreamRace order;
  for (std::size_t i = 0; i < program.size(); ++i) {
    order.set_op("#" + std::to_string(i));
    make(order, program[i]);
  }
  Findings found;
  for (const StreamHazard& hazard : order.take_hazards()) {
    found.insert({hazard.what, call_of(hazard.first), call_of(hazard.second)});
  }
  return found;
}

Findings expected(const StepProgram& program) {
  Reference reference;
  Findings found;
  for (const Call& call : program) found.merge(reference.add(call));
  return found;
}

StepProgram sensible(const StepProgram& drawn) {
  Reference reference;
  StepProgram program;
  for (const Call& call : drawn) {
    if (!reference.allows(call)) continue;
    reference.add(call);
    program.push_back(call);
  }
  return program;
}

using Broken = std::set<std::pair<std::string, int>>;

/// Returns each call and the rule that it breaks. The earlier call may differ, since the checker keeps one
/// access for several.
Broken broken(const Findings& findings) {
  Broken rules;
  for (const Finding& finding : findings) rules.emplace(finding.what, finding.second);
  return rules;
}

/// Writes a call sequence in which each call is preceded by the waits that it needs.
class CorrectProgram {
 public:
  void add(const Call& call) {
    if (!reference_.allows(call)) return;
    int last_wait = -1;
    for (Findings found = reference_.peek(call); !found.empty(); found = reference_.peek(call)) {
      last_wait = wait_for(reference_.call(found.begin()->first).stream, stream_of(call));
    }
    if (last_wait >= 0) needed_.push_back(last_wait);
    append(call);
  }

  const StepProgram& program() const { return program_; }
  /// Returns waits whose removal leaves a hazard.
  const std::vector<int>& needed() const { return needed_; }

 private:
  int stream_of(const Call& call) const {
    return call.kind == CallKind::kFree ? reference_.owner(call.block) : call.stream;
  }

  int wait_for(int earlier, int later) {
    append({CallKind::kRecord, earlier, next_event_});
    append({CallKind::kWait, later, next_event_++});
    return static_cast<int>(program_.size()) - 1;
  }

  void append(const Call& call) {
    reference_.add(call);
    program_.push_back(call);
  }

  Reference reference_;
  StepProgram program_;
  std::vector<int> needed_;
  int next_event_ = kEvents;
};

rc::Gen<Call> any_call() {
  return rc::gen::build<Call>(
      rc::gen::set(&Call::kind,
                   rc::gen::map(rc::gen::inRange(0, 9), [](int k) { return static_cast<CallKind>(k); })),
      rc::gen::set(&Call::stream, rc::gen::inRange(0, kStreams)),
      rc::gen::set(&Call::event, rc::gen::inRange(0, kEvents)),
      rc::gen::set(&Call::block, rc::gen::inRange(0, kBlocks)),
      rc::gen::set(&Call::piece, rc::gen::inRange(0, kPieces)),
      rc::gen::set(&Call::offset, rc::gen::inRange(0, 3)),
      rc::gen::set(&Call::bytes, rc::gen::inRange(1, 4)));
}

/// Returns calls of all kinds, independent of rapidcheck's size. Blocks are handed out first, since copies
/// need them.
StepProgram any_calls() {
  StepProgram calls;
  for (int block = 0; block < kBlocks; ++block) calls.push_back({CallKind::kAllocate, block, 0, block});
  for (const Call& call : *rc::gen::container<StepProgram>(rc::gen::resize(rc::kNominalSize, any_call()))) {
    calls.push_back(call);
  }
  return calls;
}

CorrectProgram any_correct_program() {
  CorrectProgram correct;
  for (const Call& call : any_calls()) {
    const bool is_event = call.kind == CallKind::kRecord || call.kind == CallKind::kWait;
    if (!is_event) correct.add(call);
  }
  return correct;
}

RC_GTEST_PROP(StreamRaceProperty, FindsTheSameRulesBrokenAsTheReference, ()) {
  const StepProgram program = sensible(any_calls());
  const Findings found = checked(program);
  const Findings reference = expected(program);
  RC_ASSERT(broken(found) == broken(reference));
  RC_ASSERT(std::includes(reference.begin(), reference.end(), found.begin(), found.end()));
}

RC_GTEST_PROP(StreamRaceProperty, ReportsNothingForCorrectPrograms, ()) {
  RC_ASSERT(checked(any_correct_program().program()).empty());
}

RC_GTEST_PROP(StreamRaceProperty, ReportsAMissingWait, ()) {
  const CorrectProgram correct = any_correct_program();
  RC_PRE(!correct.needed().empty());
  const int wait = *rc::gen::elementOf(correct.needed());
  StepProgram program = correct.program();
  program.erase(program.begin() + wait);
  RC_ASSERT(!checked(program).empty());
}

Call drawn_call(std::mt19937& bits) {
  const auto draw = [&](unsigned count) { return static_cast<int>(bits() % count); };
  Call call{static_cast<CallKind>(draw(9)), draw(kStreams), draw(kEvents), draw(kBlocks), draw(kPieces)};
  call.offset = draw(kMostBytes - 50);
  call.bytes = 1 + draw(50);
  return call;
}

/// The sequences are long enough that accesses are forgotten. All streams are in use from the start.
TEST(StreamRaceLongPrograms, ForgettingAccessesLosesNoHazard) {
  for (unsigned seed = 0; seed < 5; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 bits(seed);
    StepProgram drawn;
    for (int stream = 0; stream < kStreams; ++stream) drawn.push_back({CallKind::kKernel, stream});
    for (int i = 0; i < 3000; ++i) {
      drawn.push_back(drawn_call(bits));
      // Keeps few host waits, since otherwise the host orders most of the calls.
      const bool is_host =
          drawn.back().kind == CallKind::kHostWaits || drawn.back().kind == CallKind::kHostWaitsForStream;
      if (is_host && bits() % 16 != 0) drawn.pop_back();
    }
    const StepProgram program = sensible(drawn);
    EXPECT_EQ(broken(checked(program)), broken(expected(program)));
  }
}

}  // namespace
}  // namespace offprof
