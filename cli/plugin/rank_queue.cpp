#include "cli/plugin/rank_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "traces/base/error.h"

namespace offprof {

RankQueue::RankQueue(std::vector<int> ranks, int world_size, std::string said)
    : ranks_(std::move(ranks)), is_automatic_(ranks_.empty()), last_(world_size - 1), said_(std::move(said)) {
  if (is_automatic_) ranks_.push_back(0);
}

std::optional<int> RankQueue::next() {
  if (is_automatic_ && taken_ > 0) add_partners_of(ranks_[taken_ - 1]);
  if (is_automatic_ && taken_ == ranks_.size() && !has(last_)) ranks_.push_back(last_);
  if (taken_ == ranks_.size()) return std::nullopt;
  const int rank = ranks_[taken_++];
  tell_ranks_to_come();
  return rank;
}

void RankQueue::put_back() {
  const int rank = ranks_[taken_ - 1];
  int needed = 0;
  std::ifstream(fmt::format("{}/waits-{}", said_, rank)) >> needed;
  const std::ptrdiff_t said = things_said();
  const auto [before, is_first] = said_when_put_back_.emplace(rank, said);
  if (!is_first && before->second == said)
    throw environment_error(
        fmt::format("rank {} and rank {} each wait for an object that the other one sends", rank, needed));
  before->second = said;
  const auto coming = ranks_.begin() + static_cast<std::ptrdiff_t>(taken_);
  if (const auto found = std::find(coming, ranks_.end(), needed); found != ranks_.end()) ranks_.erase(found);
  --taken_;
  ranks_.insert(ranks_.begin() + static_cast<std::ptrdiff_t>(taken_), needed);
}

void RankQueue::tell_ranks_to_come() const {
  std::ofstream file(fmt::format("{}/to-come", said_));
  for (int rank = 0; rank <= last_; ++rank) {
    const auto found = std::ranges::find(ranks_, rank);
    const bool has_run = found < ranks_.begin() + static_cast<std::ptrdiff_t>(taken_);
    if (found == ranks_.end() ? is_automatic_ : !has_run) file << rank << '\n';
  }
}

std::ptrdiff_t RankQueue::things_said() const {
  return std::distance(std::filesystem::directory_iterator(said_), std::filesystem::directory_iterator());
}

void RankQueue::add_partners_of(int rank) {
  std::ifstream file(fmt::format("{}/partners-{}", said_, rank));
  for (int partner = 0; file >> partner && ranks_.size() + 1 < kMostAutomaticRanks;)
    if (partner >= 0 && partner <= last_ && !has(partner)) ranks_.push_back(partner);
}

bool RankQueue::has(int rank) const {
  return std::ranges::find(ranks_, rank) != ranks_.end();
}

}  // namespace offprof
