#include "cli/plugin/rank_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <span>
#include <utility>

#include "traces/base/error.h"

namespace offprof {

std::vector<int> ranks_heard_by(int rank, const std::string& said) {
  std::set<int> heard;
  std::vector<int> unread = {rank};
  while (!unread.empty()) {
    const int next = unread.back();
    unread.pop_back();
    if (!heard.insert(next).second) continue;
    std::ifstream file(fmt::format("{}/heard-{}", said, next));
    for (int other = 0; file >> other;) unread.push_back(other);
  }
  return {heard.begin(), heard.end()};
}

RankQueue::RankQueue(std::vector<int> ranks, int world_size, std::string said)
    : ranks_(std::move(ranks)),
      is_automatic_(ranks_.empty()),
      follows_partners_(is_automatic_),
      last_(world_size - 1),
      said_(std::move(said)) {
  if (is_automatic_) ranks_.push_back(0);
}

std::optional<int> RankQueue::next() {
  if (is_automatic_) add_representatives();
  if (taken_ == ranks_.size()) return std::nullopt;
  const std::span coming = std::span(ranks_).subspan(taken_);
  const auto found = std::ranges::find_if(coming, [this](int rank) { return can_run(rank); });
  if (found == coming.end()) throw environment_error(why_none_can_run());
  std::rotate(coming.begin(), found, found + 1);
  ++taken_;
  tell_ranks_to_come();
  return coming.front();
}

void RankQueue::put_back() {
  const int rank = ranks_[--taken_];
  Wait& wait = waits_[rank];
  std::ifstream(fmt::format("{}/waits-{}", said_, rank)) >> wait.rank >> wait.key;
  if (!has(wait.rank)) ranks_.push_back(wait.rank);
}

std::vector<int> RankQueue::left() const {
  return {ranks_.begin() + static_cast<std::ptrdiff_t>(taken_), ranks_.end()};
}

void RankQueue::tell_ranks_to_come() const {
  std::ofstream file(fmt::format("{}/to-come", said_));
  for (int rank = 0; rank <= last_; ++rank) {
    const auto found = std::ranges::find(ranks_, rank);
    const bool has_run = found < ranks_.begin() + static_cast<std::ptrdiff_t>(taken_);
    if (found == ranks_.end() ? is_automatic_ : !has_run) file << rank << '\n';
  }
}

bool RankQueue::can_run(int rank) const {
  const auto wait = waits_.find(rank);
  return wait == waits_.end() || std::filesystem::exists(said_ + "/" + wait->second.key);
}

std::string RankQueue::why_none_can_run() const {
  const std::span coming = std::span(ranks_).subspan(taken_);
  const int rank = coming.front(), needed = waits_.at(rank).rank;
  const auto waits = fmt::format("rank {} waits for an object that rank {} sends, ", rank, needed);
  if (std::ranges::find(coming, needed) == coming.end())
    return waits + "but that one has ended without sending it";
  return waits + fmt::format("and that one for an object of rank {}", waits_.at(needed).rank);
}

void RankQueue::add_representatives() {
  if (taken_ > 0 && follows_partners_) {
    std::ifstream file(fmt::format("{}/partners-{}", said_, ranks_[taken_ - 1]));
    for (int partner = 0; file >> partner && ranks_.size() + 1 < kMostAutomaticRanks;)
      if (partner >= 0 && partner <= last_ && !has(partner)) ranks_.push_back(partner);
  }
  if (taken_ < ranks_.size()) return;
  follows_partners_ = false;
  if (!has(last_)) ranks_.push_back(last_);
}

bool RankQueue::has(int rank) const {
  return std::ranges::find(ranks_, rank) != ranks_.end();
}

}  // namespace offprof
