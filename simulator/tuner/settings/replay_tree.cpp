#include "simulator/tuner/settings/replay_tree.h"

#include <algorithm>
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

/// Most replays that a thread has in progress at a time; it seldom has more than kUsuallyStanding.
constexpr Bytes kMostStanding = kMostPiece, kUsuallyStanding = 4;
/// Number of threads that memory is divided among, whatever the number of cores, so that the effort is the
/// same on every machine.
constexpr Bytes kThreadsFed = 4;

/// Sizes of the flat arrays of a replay (replay.cpp, offload_scheduler.h, setting_span.h) for each storage,
/// saved tensor and copy, if they have grown to twice their contents.
constexpr Bytes kLeastBytes = kKiB, kBytesPerStorage = 28, kBytesPerTensor = 44, kBytesPerCopy = 240;

Bytes bytes_of_standing(const Step& step) {
  const auto count = [](const auto& list) { return static_cast<Bytes>(list.size()); };
  const Bytes copies = std::ranges::count(step.requests(), Movability::kMovable, &PackRequest::movability);
  return kLeastBytes + kBytesPerStorage * count(step.storage_bytes()) +
         kBytesPerTensor * count(step.requests()) + kBytesPerCopy * copies;
}

/// Returns an order in which policies that diverge late are neighbours. Jobs with a start come last.
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
    Standing standing;
    std::shared_ptr<const Standing> forward{};  ///< set once the replay has passed it, if it is wanted
  };
  /// Event at which a policy leaves the trunk.
  struct Fork {
    std::size_t event;
    std::size_t member;
  };

  const Policy& policy(std::size_t member) const { return jobs_[member].policy; }

  void replay_as_tree(std::span<const std::size_t> members) {
    const std::size_t main = trunk(members);
    const Job& job = jobs_[main];
    grow({job.start ? fork(*job.start, job.policy) : begin(job.policy), job.start}, main, members, 1);
  }

  Standing begin(const Policy& policy) const {
    auto listener = options_.notes_spans ? std::make_unique<SpanListener>(tree_.step_, policy) : nullptr;
    PartialReplay replay(tree_.step_, policy, tree_.link_, listener.get());
    return {std::move(listener), std::move(replay)};
  }

  Standing fork(const Standing& from, const Policy& policy) const {
    if (from.replay.next_event() == 0) return begin(policy);
    auto listener = options_.notes_spans ? std::make_unique<SpanListener>(*from.listener) : nullptr;
    PartialReplay replay = from.replay.fork(policy, listener.get());
    return {std::move(listener), std::move(replay)};
  }

  /// Neighbours are similar. Of the two policies at the ends, the trunk is the one that diverges later from
  /// its neighbour, so that few forks are open at a time.
  std::size_t trunk(std::span<const std::size_t> members) const {
    if (members.size() < 3) return members.front();
    const std::size_t at_front = apart(members.front(), members[1]);
    return at_front >= apart(members.back(), members[members.size() - 2]) ? members.front() : members.back();
  }

  /// A listener that counts the stash in copies cannot continue to count it in bytes.
  std::size_t apart(std::size_t a, std::size_t b) const {
    const bool alike = policy(a).stash_bytes.has_value() == policy(b).stash_bytes.has_value();
    if (options_.notes_spans && !alike) return 0;
    return tree_.divergence_(policy(a), policy(b));
  }

  /// Follows the trunk, which is in progress. At each event it first replays the policies that leave there.
  /// `standing`: number of replays in progress, including this one.
  void grow(Shoot shoot, std::size_t main, std::span<const std::size_t> members, std::size_t standing) {
    standing_ = std::max(standing_, standing);
    const std::vector<Fork> forks = forks_of(main, members);
    for (auto first = forks.begin(); first != forks.end();) {
      const auto last =
          std::find_if(first, forks.end(), [&](const Fork& other) { return other.event != first->event; });
      std::vector<std::size_t> leaving;
      for (; first != last; ++first) leaving.push_back(first->member);
      advance(shoot, std::prev(last)->event, main);
      grow_all(shoot, leaving, standing + 1);
    }
    finish(std::move(shoot), main);
  }

  /// Replays the policies that leave a trunk at its current point. They share a replay, unless no more may be
  /// in progress.
  void grow_all(const Shoot& from, std::span<const std::size_t> leaving, std::size_t standing) {
    const std::size_t group = standing < most_standing_ ? leaving.size() : 1;
    for (std::size_t i = 0; i < leaving.size(); i += group) {
      const auto members = leaving.subspan(i, group);
      const std::size_t main = trunk(members);
      grow({fork(from.standing, policy(main)), from.forward}, main, members, standing);
    }
  }

  std::vector<Fork> forks_of(std::size_t main, std::span<const std::size_t> members) const {
    std::vector<Fork> forks;
    for (const std::size_t member : members)
      if (member != main) forks.push_back({apart(main, member), member});
    std::stable_sort(forks.begin(), forks.end(),
                     [](const Fork& a, const Fork& b) { return a.event < b.event; });
    return forks;
  }

  void advance(Shoot& shoot, std::size_t event, std::size_t main) {
    const std::size_t forward = tree_.divergence_.first_unpack();
    if (options_.keeps_forward && !shoot.forward && event >= forward) {
      go_on(shoot.standing, forward);
      shoot.forward = std::make_shared<const Standing>(fork(shoot.standing, policy(main)));
    }
    go_on(shoot.standing, event);
  }

  void go_on(Standing& standing, std::size_t event) {
    if (event <= standing.replay.next_event()) return;
    events_ += event - standing.replay.next_event();
    standing.replay.advance_to(event);
  }

  void finish(Shoot shoot, std::size_t main) {
    advance(shoot, tree_.step_.events().size(), main);
    const Metrics metrics = shoot.standing.replay.finish().metrics;
    done_(main, {metrics, shoot.standing.listener.get(), shoot.forward});
  }

  const ReplayTree& tree_;
  std::span<const Job> jobs_;
  const Options& options_;
  const Done& done_;
  std::size_t most_standing_;
  std::size_t events_ = 0, standing_ = 0;
};

ReplayTree::ReplayTree(const Step& step, const Link& link)
    : step_(step), link_(link), divergence_(step), standing_bytes_(bytes_of_standing(step)) {}

/// Returns the limit for one thread. It does not depend on the number of threads.
std::size_t ReplayTree::most_standing(const Options& options) const {
  const Bytes fit = options.most_bytes / standing_bytes_ / kThreadsFed;
  return static_cast<std::size_t>(std::clamp<Bytes>(fit, 1, kMostStanding));
}

/// Returns the number of threads for which the usual number of replays in progress fits the memory.
unsigned ReplayTree::threads(const Options& options) const {
  const Bytes each = std::min(static_cast<Bytes>(most_standing(options)), kUsuallyStanding) * standing_bytes_;
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
