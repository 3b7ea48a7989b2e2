#include "simulator/advisor/mixture.h"

#include <algorithm>

#include "simulator/advisor/recompute_sets.h"

namespace offprof {
namespace {

/// Returns true if a rule of the set has this tensor's operator, dtype, rank and storage size.
bool takes(const std::vector<PolicyRule>& rules, const StepProgram& program, SavedId tensor) {
  const SavedTensor& saved = program.saved[static_cast<std::size_t>(tensor)];
  const Bytes bytes = program.storages[static_cast<std::size_t>(saved.storage)].bytes;
  return std::ranges::any_of(rules, [&](const PolicyRule& rule) {
    return rule.op == program.names[static_cast<std::size_t>(saved.op)] &&
           rule.dtype == saved.layout->dtype &&
           rule.rank == static_cast<std::int64_t>(saved.layout->sizes.size()) && rule.min_bytes == bytes;
  });
}

}  // namespace

MixtureMaker::MixtureMaker(const StepProgram& program, const Step& step)
    : rule_sets_(recompute_sets(program)), versions_(movable_versions(step)) {
  for (const MovableVersion& version : versions_) largest_ = std::max(largest_, version.bytes);
  for (const std::vector<PolicyRule>& rules : rule_sets_) {
    std::vector<char>& ruled = is_ruled_.emplace_back();
    for (const MovableVersion& version : versions_)
      ruled.push_back(static_cast<char>(takes(rules, program, version.tensors.front())));
  }
}

Policy MixtureMaker::policy_of(const Mixture& mixture) const {
  if (mixture.share == 0 && mixture.rules == 0) return preset_policy("keep");
  Policy policy;
  policy.name = "advised";
  policy.rules = rule_sets_[mixture.rules];
  policy.stash_count = mixture.stash;
  policy.prefetch_bytes = mixture.prefetch * largest_ / 2;
  if (mixture.share == 0)
    policy.threshold_bytes.reset();
  else if (mixture.share < kShareSteps)
    policy.tensors = offloaded(mixture);
  return policy;
}

/// Returns the saved tensors of the versions to offload, sorted.
std::vector<std::int32_t> MixtureMaker::offloaded(const Mixture& mixture) const {
  const std::vector<char>& ruled = is_ruled_[mixture.rules];
  Bytes total = 0;
  for (std::size_t i = 0; i < versions_.size(); ++i)
    if (ruled[i] == 0) total += versions_[i].bytes;
  const double share = static_cast<double>(mixture.share) / static_cast<double>(kShareSteps);
  std::vector<std::int32_t> tensors;
  double seen = 0, chosen = 0;
  for (std::size_t i = 0; i < versions_.size(); ++i) {
    if (ruled[i] != 0) continue;
    const auto bytes = static_cast<double>(versions_[i].bytes);
    seen += bytes;
    const double due = mixture.spares_latest ? share * static_cast<double>(total) : share * seen;
    // Rounds to the nearest, so that the chosen bytes stay within half a version of the share.
    if (chosen + bytes / 2 > due) continue;
    chosen += bytes;
    tensors.insert(tensors.end(), versions_[i].tensors.begin(), versions_[i].tensors.end());
  }
  std::ranges::sort(tensors);
  return tensors;
}

}  // namespace offprof
