#include "engine/devices/virtual_gpu/state/functional_mode.h"

#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace offprof {
namespace {

/// Number of streams that kOneStream draws from: those that an offload engine uses.
constexpr std::uint64_t kStreamsToPrefer = 3;
/// Largest bound on the operations that kRandom runs after a call. The bound itself is drawn first, so that
/// some seeds keep long queues and others short ones.
constexpr std::uint64_t kMostAfterACall = 6;

}  // namespace

class FunctionalModeWork::State {
 public:
  using Index = std::size_t;

  /// The first `position` operations of a stream.
  struct Point {
    Index stream = 0;
    std::uint64_t position = 0;
  };

  struct Operation {
    std::function<void()> run;  ///< empty for records and waits
    std::vector<Point> after;
    std::function<bool()> is_reached{};  ///< may be empty: waits for nothing outside
  };

  explicit State(std::uint64_t seed) : bits_(seed) {}

  WorkOrder order() const { return order_; }
  void set_order(WorkOrder order);
  std::uint64_t draw(std::uint64_t count) { return bits_() % count; }

  void created(StreamId stream, StreamKind kind);
  void destroyed(StreamId stream);
  Index index(StreamId stream);

  void give(StreamId stream, Operation operation);
  void record(EventId event, StreamId stream);
  std::optional<Point> point_of(EventId event) const;
  Point end_of(StreamId stream);
  void forget(EventId event) { events_.erase(event); }

  void run_some();
  bool query(Point point);
  void run_until(Point point);
  void run_all();
  std::size_t pending() const;

 private:
  struct Stream {
    bool is_legacy = false;
    bool is_blocking = false;
    std::deque<Operation> queue;
    std::uint64_t given = 0, done = 0;
  };

  bool is_reached(Point point) const { return streams_[point.stream].done >= point.position; }
  std::optional<Point> blocker(const Operation& operation);
  bool is_runnable(Index stream);
  bool is_preferred_runnable();
  void run_head(Index stream);
  bool run_any();
  bool run_towards(Point point);
  void run_one(Point wanted);

  std::mt19937_64 bits_;
  WorkOrder order_{};
  Index preferred_ = 0;
  std::uint64_t most_after_a_call_ = 0;
  std::vector<Stream> streams_;
  std::unordered_map<StreamId, Index> indices_;
  std::unordered_map<StreamId, StreamKind> kinds_;
  std::unordered_map<EventId, Point> events_;
};

void FunctionalModeWork::State::set_order(WorkOrder order) {
  order_ = order;
  preferred_ = draw(kStreamsToPrefer);
  most_after_a_call_ = 1 + draw(kMostAfterACall);
}

void FunctionalModeWork::State::created(StreamId stream, StreamKind kind) {
  indices_.erase(stream);
  kinds_[stream] = kind;
}

void FunctionalModeWork::State::destroyed(StreamId stream) {
  indices_.erase(stream);
  kinds_.erase(stream);
}

auto FunctionalModeWork::State::index(StreamId stream) -> Index {
  const auto [found, is_new] = indices_.try_emplace(stream, streams_.size());
  if (!is_new) return found->second;
  const auto kind = kinds_.find(stream);
  Stream& added = streams_.emplace_back();
  added.is_legacy = stream == nullptr;
  added.is_blocking = kind != kinds_.end() && kind->second == StreamKind::kBlocking;
  return found->second;
}

void FunctionalModeWork::State::give(StreamId stream, Operation operation) {
  const Index to = index(stream);
  for (Index other = 0; other < streams_.size(); ++other) {
    const bool is_implied = (streams_[to].is_legacy && streams_[other].is_blocking) ||
                            (streams_[to].is_blocking && streams_[other].is_legacy);
    if (is_implied) operation.after.push_back({other, streams_[other].given});
  }
  streams_[to].queue.push_back(std::move(operation));
  ++streams_[to].given;
}

void FunctionalModeWork::State::record(EventId event, StreamId stream) {
  give(stream, {});
  events_[event] = end_of(stream);
}

auto FunctionalModeWork::State::point_of(EventId event) const -> std::optional<Point> {
  const auto found = events_.find(event);
  return found == events_.end() ? std::nullopt : std::optional(found->second);
}

auto FunctionalModeWork::State::end_of(StreamId stream) -> Point {
  const Index of = index(stream);
  return {of, streams_[of].given};
}

/// Draws one of the points that the operation still waits for.
auto FunctionalModeWork::State::blocker(const Operation& operation) -> std::optional<Point> {
  std::vector<Point> missing;
  for (const Point point : operation.after) {
    if (!is_reached(point)) missing.push_back(point);
  }
  if (missing.empty()) return std::nullopt;
  return missing[missing.size() == 1 ? 0 : draw(missing.size())];
}

bool FunctionalModeWork::State::is_runnable(Index stream) {
  if (streams_[stream].queue.empty()) return false;
  const Operation& head = streams_[stream].queue.front();
  for (const Point point : head.after) {
    if (!is_reached(point)) return false;
  }
  return !head.is_reached || head.is_reached();
}

bool FunctionalModeWork::State::is_preferred_runnable() {
  return order_ == WorkOrder::kOneStream && preferred_ < streams_.size() && is_runnable(preferred_);
}

void FunctionalModeWork::State::run_head(Index stream) {
  const Operation head = std::move(streams_[stream].queue.front());
  streams_[stream].queue.pop_front();
  ++streams_[stream].done;
  if (head.run) head.run();
}

/// Returns false if nothing is left, or if the rest waits for something outside.
bool FunctionalModeWork::State::run_any() {
  std::vector<Index> runnable;
  for (Index stream = 0; stream < streams_.size(); ++stream) {
    if (is_runnable(stream)) runnable.push_back(stream);
  }
  if (runnable.empty()) return false;
  run_head(is_preferred_runnable() ? preferred_ : runnable[draw(runnable.size())]);
  return true;
}

/// Runs one operation that the unreached point waits for. Returns false if that one waits for something
/// outside.
bool FunctionalModeWork::State::run_towards(Point point) {
  Index stream = point.stream;
  // Terminates, since an operation only waits for operations that were given before it.
  while (const std::optional<Point> missing = blocker(streams_[stream].queue.front()))
    stream = missing->stream;
  if (!is_runnable(stream)) return false;
  run_head(stream);
  return true;
}

/// Runs one operation. The condition outside that `wanted` waits for may depend on work that `wanted` does
/// not wait for.
void FunctionalModeWork::State::run_one(Point wanted) {
  const bool is_lazy = order_ == WorkOrder::kLate || order_ == WorkOrder::kOneStream;
  const bool has_run = is_lazy && !is_preferred_runnable() && run_towards(wanted);
  if (!has_run && !run_any()) std::this_thread::yield();
}

void FunctionalModeWork::State::run_some() {
  if (order_ == WorkOrder::kEarly) run_all();
  if (order_ == WorkOrder::kOneStream) {
    while (is_preferred_runnable()) run_any();
  }
  if (order_ == WorkOrder::kRandom) {
    std::uint64_t count = draw(most_after_a_call_ + 1);
    while (count > 0 && run_any()) --count;
  }
}

bool FunctionalModeWork::State::query(Point point) {
  run_some();
  if (is_reached(point)) return true;
  run_towards(point);
  return false;
}

void FunctionalModeWork::State::run_until(Point point) {
  while (!is_reached(point)) run_one(point);
}

void FunctionalModeWork::State::run_all() {
  while (run_any()) {
  }
}

std::size_t FunctionalModeWork::State::pending() const {
  std::size_t count = 0;
  for (const Stream& stream : streams_) count += stream.queue.size();
  return count;
}

FunctionalModeWork::FunctionalModeWork(std::uint64_t seed) : state_(std::make_unique<State>(seed)) {
  constexpr WorkOrder kOrders[] = {WorkOrder::kLate, WorkOrder::kEarly, WorkOrder::kOneStream,
                                   WorkOrder::kRandom};
  state_->set_order(kOrders[state_->draw(std::size(kOrders))]);
}

FunctionalModeWork::FunctionalModeWork(std::uint64_t seed, WorkOrder order)
    : state_(std::make_unique<State>(seed)) {
  state_->set_order(order);
}

FunctionalModeWork::~FunctionalModeWork() = default;
FunctionalModeWork::FunctionalModeWork(FunctionalModeWork&&) noexcept = default;
FunctionalModeWork& FunctionalModeWork::operator=(FunctionalModeWork&&) noexcept = default;

WorkOrder FunctionalModeWork::order() const {
  return state_->order();
}

void FunctionalModeWork::stream_created(StreamId stream, StreamKind kind) {
  state_->created(stream, kind);
}

void FunctionalModeWork::stream_destroyed(StreamId stream) {
  state_->destroyed(stream);
}

void FunctionalModeWork::copy(StreamId stream, void* to, const void* from, Bytes bytes) {
  call(stream, [=] { std::memmove(to, from, static_cast<std::size_t>(bytes)); });
}

void FunctionalModeWork::set(StreamId stream, void* to, int value, Bytes bytes) {
  call(stream, [=] { std::memset(to, value, static_cast<std::size_t>(bytes)); });
}

void FunctionalModeWork::call(StreamId stream, std::function<void()> function) {
  state_->give(stream, {std::move(function), {}});
  state_->run_some();
}

void FunctionalModeWork::wait_until(StreamId stream, std::function<bool()> is_reached) {
  state_->give(stream, {{}, {}, std::move(is_reached)});
  state_->run_some();
}

void FunctionalModeWork::record(EventId event, StreamId stream) {
  state_->record(event, stream);
  state_->run_some();
}

void FunctionalModeWork::wait(StreamId stream, EventId event) {
  if (const auto point = state_->point_of(event)) state_->give(stream, {{}, {*point}});
  state_->run_some();
}

void FunctionalModeWork::event_destroyed(EventId event) {
  state_->forget(event);
}

bool FunctionalModeWork::query_event(EventId event) {
  const auto point = state_->point_of(event);
  return !point || state_->query(*point);
}

bool FunctionalModeWork::query_stream(StreamId stream) {
  return state_->query(state_->end_of(stream));
}

void FunctionalModeWork::synchronise_event(EventId event) {
  if (const auto point = state_->point_of(event)) state_->run_until(*point);
}

void FunctionalModeWork::synchronise_stream(StreamId stream) {
  state_->run_until(state_->end_of(stream));
}

void FunctionalModeWork::synchronise_device() {
  for (state_->run_all(); state_->pending() > 0; state_->run_all()) std::this_thread::yield();
}

std::size_t FunctionalModeWork::pending() const {
  return state_->pending();
}

}  // namespace offprof
