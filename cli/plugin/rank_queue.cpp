#include "cli/plugin/rank_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <utility>

namespace offprof {

RankQueue::RankQueue(std::vector<int> ranks, int world_size, std::string said)
    : ranks_(std::move(ranks)), is_automatic_(ranks_.empty()), last_(world_size - 1), said_(std::move(said)) {
  if (is_automatic_) ranks_.push_back(0);
}

std::optional<int> RankQueue::next() {
  if (is_automatic_ && taken_ > 0) add_partners_of(ranks_[taken_ - 1]);
  if (is_automatic_ && taken_ == ranks_.size() && !has(last_)) ranks_.push_back(last_);
  if (taken_ == ranks_.size()) return std::nullopt;
  return ranks_[taken_++];
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
