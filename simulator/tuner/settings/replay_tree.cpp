#include "simulator/tuner/settings/replay_tree.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>
#include <utility>

#include "simulator/tuner/settings/movable_version.h"
#include "simulator/tuner/settings/parallel.h"

namespace offprof {
namespace {

/// Policies are cut into at least kPieces pieces for the threads, unless that leaves fewer than kLeastPiece
/// in each; a piece never has more than kMostPiece. The number of threads plays no part, so that the effort
/// is the same on every machine.
constexpr std::size_t kPieces = 16, kLeastPiece = 4, kMostPiece = 64;

/// Most replays that a thread has in progress at a time: each fork has at most half of the policies.
constexpr Bytes kMostStanding = std::bit_width(kMostPiece);
/// Number of threads that memory is divided among, whatever the number of cores, so that the effort is the
/// same on every machine.
constexpr Bytes kThreadsFed = 4;

/// Sizes of the flat arrays of a replay (replay.cpp, offload_scheduler.h, sweep_listener.h) for each storage,
/// saved tensor and copy, if they have grown to twice their contents.
constexpr Bytes kLeastBytes = kKiB, kBytesPerStorage = 28, kBytesPerTensor = 44, kBytesPerCopy = 240;

Bytes bytes_of_standing(const Step& step) {
  const auto count = [](const auto& list) { return static_cast<Bytes>(list.size()); };
  const Bytes copies = std::ranges::count(step.requests(), Movability::kMovable, &PackRequest::movability);
  return kLeastBytes + kBytesPerStorage * count(step.storage_bytes()) +
         kBytesPerTensor * count(step.requests()) + kBytesPerCopy * copies;
}

/// Returns an order in which policies that agree for long are neighbours. Jobs with a start come last.
std::vector<std::size_t> in_order_of_likeness(std::span<const ReplayTree::Job> jobs) {
  std::vector<std::size_t> order(jobs.size());
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::size_t i) {
    const Policy& policy = jobs[i].policy;
    return std::tie(policy.threshold_bytes, policy.stash_count, policy.stash_bytes, policy.tensors,
                    policy.prefetch_bytes);
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  std::stable_partition(order.begin(), order.end(), [&](std::size_t i) { return jobs[i].start == nullptr; });
  return order;
}

/// Cuts the order into pieces of similar length. Each job with a start is a piece of its own.
std::vector<std::span<const std::size_t>> in_pieces(std::span<const std::size_t> order, std::size_t rooted,
                                                    bool shares) {
  const std::size_t piece =
      shares ? std::clamp((rooted + kPieces - 1) / kPieces, kLeastPiece, kMostPiece) : 1;
  std::vector<std::span<const std::size_t>> pieces;
  for (std::size_t i = 0; i < order.size(); i += pieces.back().size())
    pieces.push_back(order.subspan(i, i < rooted ? std::min(piece, rooted - i) : 1));
  return pieces;
}

}  // namespace

/// Replays one piece of the policies, in one thread.
class ReplayTree::Branch {
 public:
  Branch(const ReplayTree& tree, std::span<const Job> jobs, const Options& options, const Done& done)
      : tree_(tree),
        jobs_(jobs),
        options_(options),
        done_(done),
        most_standing_(tree.most_standing(options)) {}

  /// `members`: indices of policies.
  void replay(std::span<const std::size_t> members) {
    if (most_standing_ > 1) return replay_as_tree(members);
    for (std::size_t i = 0; i < members.size(); ++i) replay_as_tree(members.subspan(i, 1));
  }
  ReplayEffort effort() const { return {events_, 0, standing_}; }

 private:
  struct Shoot {
    std::size_t member;  ///< the job whose policy it replays
    Standing standing;
    std::shared_ptr<const Standing> forward{};  ///< set once the replay has passed it, if it is wanted
  };
  using Members = std::vector<std::size_t>;  ///< indices of jobs

  const Policy& policy(std::size_t member) const { return jobs_[member].policy; }

  void replay_as_tree(std::span<const std::size_t> members) {
    const Job& job = jobs_[members.front()];
    const auto start = tree_.step_.carries_tensors() ? nullptr : job.start;
    grow({members.front(), start ? fork(*start, job.policy) : begin(job.policy), start},
         {members.begin(), members.end()}, 1);
  }

  Standing begin(const Policy& policy) const {
    auto listener = options_.listens ? std::make_unique<SweepListener>(tree_.step_) : nullptr;
    PartialReplay replay(tree_.step_, policy, tree_.link_, listener.get());
    return {std::move(listener), std::move(replay)};
  }

  Standing fork(const Standing& from, const Policy& policy) const {
    if (from.replay.next_event() == 0) return begin(policy);
    auto listener = options_.listens ? std::make_unique<SweepListener>(*from.listener) : nullptr;
    PartialReplay replay = from.replay.fork(policy, listener.get());
    return {std::move(listener), std::move(replay)};
  }

  Shoot fork(const Shoot& from, std::size_t member) const {
    return {member, fork(from.standing, policy(member)), from.forward};
  }

  /// Continues a replay in progress for all members to the end of the step. Where some of them no longer
  /// agree with the others, the smaller part is replayed first, on a fork, so at most kMostStanding replays
  /// are in progress. `standing`: their number, including this one.
  void grow(Shoot shoot, Members members, std::size_t standing) {
    standing_ = std::max(standing_, standing);
    while (members.size() > 1) {
      const std::size_t next = next_decision(shoot);
      advance(shoot, next);
      if (next == tree_.step_.events().size()) break;
      Members leaving = take_those_that_leave(shoot, members);
      if (leaving.size() > members.size()) {
        std::swap(members, leaving);
        grow_fork(shoot, leaving, standing + 1);
        shoot = fork(shoot, members.front());
      } else if (!leaving.empty()) {
        grow_fork(shoot, leaving, standing + 1);
      } else {
        advance(shoot, next + 1);
      }
    }
    finish(std::move(shoot), members);
  }

  /// The members share the fork, unless no more replays may be in progress.
  void grow_fork(const Shoot& from, const Members& members, std::size_t standing) {
    if (standing < most_standing_) return grow(fork(from, members.front()), members, standing);
    for (const std::size_t member : members) grow(fork(from, member), {member}, standing);
  }

  /// Returns the index of the next event on which members may disagree; the number of events if there is
  /// none.
  std::size_t next_decision(const Shoot& shoot) const {
    const auto events = tree_.step_.events();
    std::size_t next = shoot.standing.replay.next_event();
    const auto decides = [&](const Event& event) {
      return event.kind == EventKind::kPack || event.kind == EventKind::kUnpack;
    };
    while (next > 0 && next < events.size() && !decides(events[next])) ++next;
    return next;
  }

  /// Takes out the members that do not agree with the replay on its next event.
  Members take_those_that_leave(const Shoot& shoot, Members& members) const {
    const auto leaving = std::stable_partition(members.begin(), members.end(), [&](std::size_t member) {
      return member == shoot.member || shoot.standing.replay.agrees(policy(member));
    });
    Members taken(leaving, members.end());
    members.erase(leaving, members.end());
    return taken;
  }

  void advance(Shoot& shoot, std::size_t event) {
    if (options_.keeps_forward && !shoot.forward && event >= tree_.first_unpack_) {
      go_on(shoot.standing, tree_.first_unpack_);
      shoot.forward = std::make_shared<const Standing>(fork(shoot.standing, policy(shoot.member)));
    }
    go_on(shoot.standing, event);
  }

  void go_on(Standing& standing, std::size_t event) {
    if (event <= standing.replay.next_event()) return;
    events_ += event - standing.replay.next_event();
    standing.replay.advance_to(event);
  }

  /// Replays to the end. Members that have agreed until then have the same result.
  void finish(Shoot shoot, const Members& members) {
    advance(shoot, tree_.step_.events().size());
    const Metrics metrics = shoot.standing.replay.finish().metrics;
    for (const std::size_t member : members)
      done_(member,
            {metrics, shoot.standing.replay.limit_ranges(), shoot.standing.listener.get(), shoot.forward});
  }

  const ReplayTree& tree_;
  std::span<const Job> jobs_;
  const Options& options_;
  const Done& done_;
  std::size_t most_standing_;
  std::size_t events_ = 0, standing_ = 0;
};

ReplayTree::ReplayTree(const Step& step, const Link& link)
    : step_(step),
      link_(link),
      first_unpack_(static_cast<std::size_t>(
          std::ranges::find(step.events(), EventKind::kUnpack, &Event::kind) - step.events().begin())),
      standing_bytes_(bytes_of_standing(step)) {}

/// Returns the limit for one thread. It does not depend on the number of threads. A step that carries tensors
/// begins differently under each policy.
std::size_t ReplayTree::most_standing(const Options& options) const {
  if (step_.carries_tensors()) return 1;
  const Bytes fit = options.most_bytes / standing_bytes_ / kThreadsFed;
  return static_cast<std::size_t>(std::clamp<Bytes>(fit, 1, kMostStanding));
}

/// Returns the number of threads whose replays in progress fit the memory.
unsigned ReplayTree::threads(const Options& options) const {
  const Bytes each = static_cast<Bytes>(most_standing(options)) * standing_bytes_;
  const unsigned wanted = options.threads > 0 ? options.threads : std::thread::hardware_concurrency();
  return static_cast<unsigned>(std::clamp<Bytes>(options.most_bytes / each, 1, std::max(wanted, 1U)));
}

ReplayEffort ReplayTree::replay(std::span<const Job> jobs, const Options& options, const Done& done) const {
  const std::vector<std::size_t> order = in_order_of_likeness(jobs);
  const auto rooted = std::count_if(jobs.begin(), jobs.end(), [](const Job& job) { return !job.start; });
  const auto pieces = in_pieces(order, static_cast<std::size_t>(rooted), options.shares);
  std::vector<ReplayEffort> efforts(pieces.size());
  for_each_index(pieces.size(), threads(options), [&](std::size_t i) {
    Branch branch(*this, jobs, options, done);
    branch.replay(pieces[i]);
    efforts[i] = branch.effort();
  });
  ReplayEffort effort{0, jobs.size() * step_.events().size(), 0};
  for (const ReplayEffort& of_piece : efforts) effort += of_piece;
  return effort;
}

}  // namespace offprof
