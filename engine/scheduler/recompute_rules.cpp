#include "engine/scheduler/recompute_rules.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace offprof {
namespace {

/// Storage and version, as in SavedTensor.
using Content = std::pair<std::int32_t, std::uint32_t>;

class RecomputeChoice {
 public:
  RecomputeChoice(const StepProgram& program, const std::vector<char>& is_lossy,
                  std::vector<RuledPlacement>& placements)
      : program_(program), is_lossy_(is_lossy), placements_(placements) {
    for (const Recomputation& recomputation : *program.recomputations)
      recomputations_.emplace(content_of(recomputation.tensor), &recomputation);
  }

  /// Goes in the order in which tensors were saved, so the sources of a recomputation are settled before it.
  std::size_t settle() {
    std::size_t settled = 0;
    for (std::size_t i = 0; i < placements_.size(); ++i) {
      RuledPlacement& placement = placements_[i];
      if (!placement) continue;
      const Content content = content_of(static_cast<std::int32_t>(i));
      if (placement->transform >= 0 && is_lossy_[placement->transform] != 0) lossy_.insert(content);
      if (placement->place != Place::kRecompute) continue;
      placement->recomputation = recomputation_for(content);
      if (placement->recomputation != nullptr)
        ++settled;
      else
        placement = ResolvedPlacement{Place::kDevice, PlacementReason::kUnfitToRecompute};
    }
    return settled;
  }

 private:
  Content content_of(std::int32_t tensor) const {
    const SavedTensor& saved = program_.saved[tensor];
    return {saved.storage, saved.version};
  }

  const Recomputation* recomputation_for(const Content& content) {
    const auto found = recomputations_.find(content);
    if (found == recomputations_.end()) return nullptr;
    int followed = 1;
    for (const std::int32_t source : found->second->sources) {
      const Content taken = content_of(source);
      if (lossy_.contains(taken)) return nullptr;
      if (const auto recomputed = recomputations_followed_.find(taken);
          recomputed != recomputations_followed_.end())
        followed = std::min(followed + recomputed->second, kLongestRecompute + 1);
    }
    if (followed > kLongestRecompute) return nullptr;
    recomputations_followed_[content] = followed;
    return found->second;
  }

  const StepProgram& program_;
  const std::vector<char>& is_lossy_;
  std::vector<RuledPlacement>& placements_;
  std::map<Content, const Recomputation*> recomputations_;
  std::set<Content> lossy_;                         ///< contents that a lossy transform encodes
  std::map<Content, int> recomputations_followed_;  ///< recompute steps of each recomputed content
};

}  // namespace

std::size_t settle_recomputations(const StepProgram& program, const std::vector<char>& is_lossy,
                                  std::vector<RuledPlacement>& placements) {
  return RecomputeChoice(program, is_lossy, placements).settle();
}

}  // namespace offprof
