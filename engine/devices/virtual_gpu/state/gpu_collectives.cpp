#include "engine/devices/virtual_gpu/state/gpu_collectives.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/values/peer_values.h"
#include "traces/base/error.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

/// Longest real time for which a collective waits until the watchdogs have looked.
constexpr std::chrono::seconds kPatience{2};

/// Returns true if the reduction of equal numbers is the number.
bool same_of_equal(Reduction reduction) {
  return reduction == Reduction::kMax || reduction == Reduction::kMin || reduction == Reduction::kAverage;
}

/// Returns the name of NCCL's kernel, without the algorithm and the number type.
std::string_view kernel_of(Collective collective) {
  constexpr std::array<std::string_view, kCollectives> kKernels = {
      "ncclDevKernel_AllReduce", "ncclDevKernel_AllGather", "ncclDevKernel_ReduceScatter",
      "ncclDevKernel_Broadcast", "ncclDevKernel_Reduce",    "ncclDevKernel_SendRecv",
      "ncclDevKernel_SendRecv",  "ncclDevKernel_SendRecv"};
  return kKernels.at(static_cast<std::size_t>(collective));
}

bool is_message(const CollectiveCall& call) {
  return call.collective == Collective::kSend || call.collective == Collective::kReceive;
}

/// Returns the time of a group of calls: sends and receives run at once, collectives one after the other.
Nanoseconds sum_of(const std::array<Nanoseconds, kCollectives>& times) {
  const Nanoseconds sends = times.at(static_cast<std::size_t>(Collective::kSend));
  const Nanoseconds receives = times.at(static_cast<std::size_t>(Collective::kReceive));
  return std::accumulate(times.begin(), times.end(), -std::min(sends, receives));
}

const char* bytes_at(const void* address) {
  return static_cast<const char*>(address);
}

}  // namespace

void GpuCollectives::restart() {
  const DeviceProfile& card = state_.options.profile;
  cost_.emplace(card, state_.options.cluster ? *state_.options.cluster : usual_cluster(card));
  most_communicators_ = static_cast<std::int64_t>(communicators_.size());
  for (int i = 0; i < kCollectives; ++i)
    counts_.at(static_cast<std::size_t>(i)) = {.name = std::string(name_of(static_cast<Collective>(i)))};
}

void GpuCollectives::note_group(const std::string& key, NotedGroup group) {
  const GpuLock lock(state_.mutex);
  noted_groups_[key] = std::move(group);
}

std::optional<NotedGroup> GpuCollectives::noted_group(const std::string& key) const {
  const GpuLock lock(state_.mutex);
  const auto found = noted_groups_.find(key);
  return found == noted_groups_.end() ? std::nullopt : std::optional(found->second);
}

void GpuCollectives::exchange_with_peers(PeerSettings settings) {
  const GpuLock lock(state_.mutex);
  peers_ = std::move(settings);
}

void GpuCollectives::note_objects(bool are_carried) {
  const GpuLock lock(state_.mutex);
  if (are_carried) {
    state_.threads_with_objects.insert(std::this_thread::get_id());
  } else {
    state_.threads_with_objects.erase(std::this_thread::get_id());
  }
}

void GpuCollectives::stop_exchange() {
  const GpuLock lock(state_.mutex);
  talks_.clear();
}

Communicator* GpuCollectives::create(int rank, int ranks, std::optional<int> nodes, const std::string& key) {
  const GpuLock lock(state_.mutex);
  const int of_node = std::max(1, state_.options.devices);
  const GroupShape group{.ranks = ranks, .nodes = nodes.value_or((ranks + of_node - 1) / of_node)};
  auto created = std::make_unique<Communicator>(Communicator{rank, group});
  Communicator* const communicator = created.get();
  communicators_.emplace(communicator, std::move(created));
  if (peers_ && !key.empty() && ranks > 1)
    talks_.emplace(communicator, std::make_shared<PeerTalk>(*peers_, key, rank, ranks));
  most_communicators_ = std::max(most_communicators_, static_cast<std::int64_t>(communicators_.size()));
  return communicator;
}

Communicator* GpuCollectives::split(Communicator* whole, int color, int order) {
  std::shared_ptr<PeerTalk> talk;
  {
    const GpuLock lock(state_.mutex);
    const auto found = talks_.find(whole);
    if (found == talks_.end() || !peers_->patience) return nullptr;
    talk = found->second;
  }
  try {
    const PlaceInPart place = talk->split(color, order);
    if (color < 0) return nullptr;  // in no part
    return create(place.rank, place.ranks, std::nullopt, talk->key_of_part(color));
  } catch (const Error& error) {
    const GpuLock lock(state_.mutex);
    state_.peer_problem = error.what();
    return nullptr;
  }
}

std::string GpuCollectives::name_of_part(const Communicator* whole, int color) {
  const GpuLock lock(state_.mutex);
  const auto found = talks_.find(whole);
  return found == talks_.end() ? std::string() : found->second->begin_part(color);
}

std::string GpuCollectives::take_problem() {
  const GpuLock lock(state_.mutex);
  return std::exchange(state_.peer_problem, {});
}

GpuStatus GpuCollectives::destroy(Communicator* communicator) {
  const GpuLock lock(state_.mutex);
  if (!communicators_.contains(communicator)) return GpuStatus::kInvalidHandle;
  state_.wait_for_device();
  state_.watched_ends.show_all();
  talks_.erase(communicator);
  communicators_.erase(communicator);
  return GpuStatus::kOk;
}

GpuStatus GpuCollectives::finalize(const Communicator* communicator) {
  const std::string site = call_site();
  const GpuLock lock(state_.mutex);
  if (!communicators_.contains(communicator)) return GpuStatus::kInvalidHandle;
  state_.wait_for_device();
  state_.watched_ends.show_all();
  const GpuStatus status = compare(communicator, [&](PeerTalk& talk) { talk.leave(site); });
  talks_.erase(communicator);
  return status;
}

bool GpuCollectives::exists(const Communicator* communicator) const {
  const GpuLock lock(state_.mutex);
  return communicators_.contains(communicator);
}

void GpuCollectives::let_watchdogs_look() {
  std::unique_lock lock(state_.mutex);
  state_.watched_ends.look(state_.time.host_time());
  await_watchdogs(lock);
}

/// Waits until the watchdogs have seen all ends that are visible to them.
void GpuCollectives::await_watchdogs(std::unique_lock<std::mutex>& lock) {
  const auto have_looked = [this] { return state_.watched_ends.has_looked(); };
  if (!state_.watchdog_told.wait_for(lock, kPatience, have_looked)) state_.watched_ends.give_up();
}

/// PyTorch drops the tensors of the collectives whose ends its watchdogs have seen when the next one begins.
void GpuCollectives::begin_collective() {
  std::unique_lock lock(state_.mutex);
  state_.watched_ends.look_periodically(state_.time.host_time());
  await_watchdogs(lock);
}

GpuStatus GpuCollectives::run(StreamId stream, const Communicator& communicator,
                              std::span<const CollectiveCall> calls) {
  begin_collective();
  const std::string site = call_site();
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (calls.empty()) return GpuStatus::kOk;
  const CollectiveTimes times = times_of(communicator, calls);
  const Nanoseconds duration = sum_of(times);
  kernels_.run_for(stream, kernel_of(calls.front().collective), duration);
  state_.time.note_collective(stream, duration);
  state_.watched_ends.given(stream);
  for (const CollectiveCall& call : calls) {
    CollectiveCount& count = counts_.at(static_cast<std::size_t>(call.collective));
    ++count.calls;
    count.bytes += call.bytes;
  }
  const CollectiveRange range = cost_->range_of(communicator.group);
  for (std::size_t i = 0; i < times.size(); ++i) {
    counts_.at(i).time_ns += times.at(i);
    counts_.at(i).range.low_ns += to_whole(range.low * static_cast<double>(times.at(i)));
    counts_.at(i).range.high_ns += to_whole(range.high * static_cast<double>(times.at(i)));
  }
  const bool talks = talks_.contains(&communicator) && !state_.functional_mode;
  if (talks && peers_->patience)
    return compare(&communicator, [&](PeerTalk& talk) {
      for (const CollectiveCall& call : calls) talk.call(call, site, state_.values);
    });
  for (const CollectiveCall& call : calls) carry_values(stream, communicator, call);
  gather_broadcasts(stream, calls);
  if (talks) compare(&communicator, [&](PeerTalk& talk) { take_from_earlier_ranks(talk, calls, site); });
  return GpuStatus::kOk;
}

/// Returns where the program is. May wait for Python: call it without the lock.
std::string GpuCollectives::call_site() const {
  return peers_ ? peers_->call_site() : std::string();
}

/// Tells other ranks of the communicator, if it has any, what this one does, and keeps the problem if that
/// does not match what they do.
GpuStatus GpuCollectives::compare(const Communicator* communicator,
                                  const std::function<void(PeerTalk&)>& tell) {
  const auto found = talks_.find(communicator);
  if (found == talks_.end() || state_.functional_mode) return GpuStatus::kOk;
  try {
    tell(*found->second);
    return GpuStatus::kOk;
  } catch (const Error& error) {
    if (peers_->patience) {
      state_.peer_problem = error.what();
      return GpuStatus::kPeerProblem;
    }
    if (mismatch_.empty()) mismatch_ = error.what();
    talks_.erase(found);  // all that follows would differ too
    return GpuStatus::kOk;
  }
}

/// Compares the calls with those of ranks that ran before, and takes what these broadcast and send.
void GpuCollectives::take_from_earlier_ranks(PeerTalk& talk, std::span<const CollectiveCall> calls,
                                             const std::string& site) {
  for (CollectiveCall call : calls) {
    call.is_of_objects = state_.carries_objects();
    const std::vector<char> heard = talk.call_alone(call, site, state_.values);
    if (!heard.empty())
      state_.values.write(call.receive, heard.data(), static_cast<Bytes>(heard.size()),
                          SmallValues::Known::kUntilWritten);
  }
}

Nanoseconds GpuCollectives::time_of(const Communicator& communicator,
                                    std::span<const CollectiveCall> calls) const {
  const GpuLock lock(state_.mutex);
  return sum_of(times_of(communicator, calls));
}

GpuCollectives::CollectiveTimes GpuCollectives::times_of(const Communicator& communicator,
                                                         std::span<const CollectiveCall> calls) const {
  CollectiveTimes times{};
  for (const CollectiveCall& call : calls)
    if (!is_message(call))
      times.at(static_cast<std::size_t>(call.collective)) +=
          cost_->time_of(call.collective, call.bytes, communicator.group);
  for (const Collective direction : {Collective::kSend, Collective::kReceive})
    times.at(static_cast<std::size_t>(direction)) = time_of_messages(communicator, calls, direction);
  return times;
}

/// Returns the time of the messages in one direction, which run at once.
Nanoseconds GpuCollectives::time_of_messages(const Communicator& communicator,
                                             std::span<const CollectiveCall> calls,
                                             Collective direction) const {
  const GroupShape group = communicator.group;
  const int ranks_of_node = group.ranks_of_node();
  Messages messages;
  Bytes to_itself = 0;
  for (const CollectiveCall& call : calls) {
    if (call.collective != direction) continue;
    if (call.root == communicator.rank) {
      to_itself += call.bytes;
    } else if (call.root / ranks_of_node == communicator.rank / ranks_of_node) {
      ++messages.in_node;
      messages.in_node_bytes += call.bytes;
    } else {
      ++messages.between_nodes;
      messages.between_nodes_bytes += call.bytes;
    }
  }
  Nanoseconds time = 0;
  if (to_itself > 0) time = cost_->time_of(direction, to_itself, {.ranks = 1});
  if (messages.in_node + messages.between_nodes > 0) time = std::max(time, cost_->time_of(messages, group));
  return time;
}

void GpuCollectives::carry_values(StreamId stream, const Communicator& communicator,
                                  const CollectiveCall& call) {
  const int ranks = communicator.group.ranks;
  const Bytes part = call.bytes / ranks;
  auto* const receive = static_cast<char*>(call.receive);
  switch (call.collective) {
    case Collective::kAllReduce:
      return reduce(stream, communicator, call, call.bytes);
    case Collective::kReduce:
      if (call.is_root) reduce(stream, communicator, call, call.bytes);
      return;
    case Collective::kReduceScatter: {
      CollectiveCall own = call;
      own.send = bytes_at(call.send) + communicator.rank * part;
      return reduce(stream, communicator, own, part);
    }
    case Collective::kBroadcast:
      // The root gives what this rank would: what it has at `send`, or already at `receive` if they are one.
      return move(stream, call.receive, call.send, call.bytes);
    case Collective::kAllGather:
      for (int rank = 0; rank < ranks; ++rank) move(stream, receive + rank * part, call.send, part);
      return;
    case Collective::kAllToAll:
      for (int rank = 0; rank < ranks; ++rank)
        move(stream, receive + rank * part, bytes_at(call.send) + communicator.rank * part, part);
      return;
    case Collective::kSend:
      return;
    case Collective::kReceive:
      state_.values.forget(call.receive, call.bytes);
      return;
  }
}

/// Broadcasts in one group gather: PyTorch 2.15 gathers a list of tensors by one of each rank. The others
/// give what this rank does.
void GpuCollectives::gather_broadcasts(StreamId stream, std::span<const CollectiveCall> calls) {
  const auto is_broadcast = [](const CollectiveCall& call) {
    return call.collective == Collective::kBroadcast;
  };
  if (calls.size() < 2 || !std::ranges::all_of(calls, is_broadcast)) return;
  const auto own = std::ranges::find(calls, true, &CollectiveCall::is_root);
  if (own == calls.end()) return;
  for (const CollectiveCall& call : calls)
    if (!call.is_root && call.bytes == own->bytes) move(stream, call.receive, own->send, call.bytes);
}

void GpuCollectives::move(StreamId stream, void* to, const void* from, Bytes bytes) {
  if (to == from || bytes == 0) return;
  if (state_.functional_mode) {
    state_.functional_mode->copy(stream, to, from, bytes);
  } else {
    state_.values.copy(to, from, bytes, SmallValues::Known::kUntilWritten);
  }
}

void GpuCollectives::reduce(StreamId stream, const Communicator& communicator, const CollectiveCall& call,
                            Bytes bytes) {
  if (state_.functional_mode) return move(stream, call.receive, call.send, bytes);
  std::vector<char> numbers = state_.values.read(call.send, bytes);
  const bool is_known =
      !numbers.empty() &&
      (same_of_equal(call.reduction) ||
       (call.reduction == Reduction::kSum && sum_equal(numbers, call.type, communicator.group.ranks)));
  if (is_known) {
    state_.values.write(call.receive, numbers.data(), bytes, SmallValues::Known::kUntilWritten);
  } else {
    state_.values.forget(call.receive, bytes);
  }
}

CollectiveFigures GpuCollectives::figures() const {
  const GpuLock lock(state_.mutex);
  CollectiveFigures figures;
  figures.communicators = most_communicators_;
  figures.mismatch = mismatch_;
  figures.exposed_ns = state_.time.exposed_collectives();
  for (const CollectiveCount& count : counts_)
    if (count.calls > 0) figures.counts.push_back(count);
  return figures;
}

}  // namespace offprof
