#include "engine/scheduler/placement_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/scheduler/recompute_rules.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

bool matches_name(const std::optional<std::string>& pattern, std::optional<std::string_view> name) {
  return !pattern || (name && fnmatch(pattern->c_str(), std::string(*name).c_str(), FNM_NOESCAPE) == 0);
}

template <typename Number>
bool is_within(const std::optional<Number>& low, const std::optional<Number>& high, Number value) {
  return (!low || value >= *low) && (!high || value <= *high);
}

/// Returns a name for messages, such as `saved tensor 7, int64[4, 128] of aten::embedding`.
std::string name_of(const StepProgram& program, std::size_t tensor) {
  const SavedTensor& saved = program.saved[tensor];
  return fmt::format("saved tensor {}, {}[{}] of {}", tensor, saved.layout->dtype,
                     fmt::join(saved.layout->sizes, ", "), program.names[saved.op]);
}

/// Applies the rules of one policy to one step program.
class RuleBook {
 public:
  RuleBook(const Policy& policy, const StepProgram& program, std::span<const TransformProfile> profiles)
      : policy_(policy), rules_(policy.rules), program_(program), profiles_(profiles) {
    result_.transforms = transforms_in(rules_);
  }

  StepPlacements choose() {
    result_.by_tensor.resize(program_.saved.size());
    rule_of_.assign(program_.saved.size(), -1);
    for (std::size_t i = 0; i < program_.saved.size(); ++i) match(i);
    drop_unfit_transforms();
    give_recomputations();
    for (std::size_t i = 0; i < program_.saved.size(); ++i) look_up_cost(i);
    warn();
    return std::move(result_);
  }

 private:
  struct Use {
    bool matches_any = false;
    bool matches_movable = false;
  };
  /// Saved tensors that share one content.
  struct Content {
    std::vector<std::size_t> tensors;
    bool is_filled = false;  ///< one of them fills the storage densely
    bool is_alike = true;    ///< all have elements, the same dtype and the same transform
  };

  Bytes storage_bytes(const SavedTensor& saved) const {
    return saved.storage < 0 ? 0 : program_.storages[saved.storage].bytes;
  }

  /// Returns 0 if an element is smaller than a byte: no transform takes such tensors. The tensor must have
  /// elements.
  std::int64_t elements_in_storage(const SavedTensor& saved) const {
    const Bytes width = saved.bytes / elements_of(*saved.layout);
    return width > 0 ? storage_bytes(saved) / width : 0;
  }

  bool matches_tensor(const PolicyRule& rule, std::size_t tensor) const {
    const SavedTensor& saved = program_.saved[tensor];
    return matches(rule, {.op = program_.names[saved.op],
                          .module = saved.module < 0 ? std::string_view() : program_.names[saved.module],
                          .dtype = saved.layout->dtype,
                          .rank = static_cast<std::int64_t>(saved.layout->sizes.size()),
                          .storage_bytes = storage_bytes(saved),
                          .position = static_cast<std::int32_t>(tensor)});
  }

  void match(std::size_t tensor) {
    const bool is_movable = traits_of(policy_.scheduler).moves_parameter_views ||
                            program_.saved[tensor].movability == Movability::kMovable;
    uses_.resize(rules_.size());
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (!matches_tensor(rules_[i], tensor)) continue;
      uses_[i].matches_any = true;
      if (!is_movable) return;
      uses_[i].matches_movable = true;
      rule_of_[tensor] = static_cast<std::int32_t>(i);
      result_.by_tensor[tensor] = {rules_[i].placement.place, PlacementReason::kRule,
                                   transform_index(rules_[i].placement.transform)};
      return;
    }
  }

  std::int32_t transform_index(const std::string& name) const {
    if (name.empty()) return -1;
    return static_cast<std::int32_t>(std::ranges::find(result_.transforms, name) -
                                     result_.transforms.begin());
  }

  std::int32_t transform_of(std::size_t tensor) const {
    return result_.by_tensor[tensor] ? result_.by_tensor[tensor]->transform : -1;
  }

  void drop_unfit_transforms() {
    if (result_.transforms.empty()) return;
    std::map<std::pair<std::int32_t, std::uint32_t>, Content> contents;
    for (std::size_t i = 0; i < program_.saved.size(); ++i) {
      const SavedTensor& saved = program_.saved[i];
      if (saved.movability == Movability::kMovable) add_to(contents[{saved.storage, saved.version}], i);
    }
    for (const auto& [key, content] : contents)
      if (!content.is_filled || !content.is_alike)
        for (const std::size_t tensor : content.tensors) drop_transform(tensor);
  }

  void add_to(Content& content, std::size_t tensor) const {
    const SavedTensor& saved = program_.saved[tensor];
    content.tensors.push_back(tensor);
    const std::size_t first = content.tensors.front();
    content.is_alike = content.is_alike && elements_of(*saved.layout) > 0 &&
                       transform_of(tensor) == transform_of(first) &&
                       saved.layout->dtype == program_.saved[first].layout->dtype;
    content.is_filled = content.is_filled || (saved.bytes == storage_bytes(saved) && is_dense(*saved.layout));
  }

  void drop_transform(std::size_t tensor) {
    if (transform_of(tensor) < 0) return;
    result_.by_tensor[tensor]->transform = -1;
    result_.by_tensor[tensor]->reason = PlacementReason::kUnfitToEncode;
  }

  void give_recomputations() {
    if (!recomputes(policy_) || traits_of(policy_.scheduler).has_few_settings) return;
    if (!program_.recomputations)
      throw NotRecorded("the trace does not record which tensors can be recomputed in backward");
    std::vector<char> is_lossy;
    for (const std::string& name : result_.transforms)
      is_lossy.push_back(profile_of(name).is_lossless ? 0 : 1);
    const bool asked = std::ranges::any_of(result_.by_tensor, [](const RuledPlacement& placement) {
      return placement && placement->place == Place::kRecompute;
    });
    if (settle_recomputations(program_, is_lossy, result_.by_tensor) == 0 && asked)
      result_.warnings.emplace_back("no tensor that a rule places on recompute can be recomputed");
    if (policy_.tensors) leave_unfit_to_plan();
    for (const RuledPlacement& placement : result_.by_tensor)
      if (placement && placement->recomputation != nullptr)
        add_up(placement->recomputation->use, placement->recomputation->op);
  }

  /// A plan names the tensors to move, so it also decides about those that cannot be recomputed.
  void leave_unfit_to_plan() {
    for (RuledPlacement& placement : result_.by_tensor)
      if (placement && placement->reason == PlacementReason::kUnfitToRecompute) placement.reset();
  }

  void look_up_cost(std::size_t tensor) {
    if (transform_of(tensor) < 0) return;
    const SavedTensor& saved = program_.saved[tensor];
    const std::string& name = result_.transforms[transform_of(tensor)];
    const TransformProfile& profile = profile_of(name);
    const auto found = std::ranges::find_if(profile.costs, [&](const TransformCost& cost) {
      return cost.dtype == saved.layout->dtype && cost.elements == elements_in_storage(saved);
    });
    if (found == profile.costs.end())
      throw input_error(
          fmt::format("rule {} encodes {} with {}, which does not support {}", rule_of_[tensor] + 1,
                      name_of(program_, tensor), name, saved.layout->dtype),
          R"(Give the rule a "dtype", such as "float32", or another placement.)");
    result_.by_tensor[tensor]->encoded_bytes = found->encoded_bytes;
    result_.by_tensor[tensor]->cost = &*found;
    for (const TransformUse* use : {&found->encode, &found->decode}) add_up(*use, name);
  }

  /// Checks that sums over the trace stay below 64 bits, in which clocks and memory are counted.
  void add_up(const TransformUse& use, const std::string& name) {
    constexpr double kMostBytes = 0x1p59, kMostNs = 0x1p57;
    for (const TransformMemory& step : use.memory) bytes_ += static_cast<double>(step.bytes);
    ns_ += static_cast<double>(use.compute_ns) + static_cast<double>(use.work.host_ns) +
           static_cast<double>(use.work.stream_ns) + static_cast<double>(use.work.path_ns) +
           static_cast<double>(use.work.waits() ? use.work.wait_ns : 0);
    if (bytes_ > kMostBytes || ns_ > kMostNs)
      throw input_error(fmt::format("the recorded costs of {} add up to more than any machine has", name));
  }

  const TransformProfile& profile_of(const std::string& name) const {
    const auto found = std::ranges::find(profiles_, name, &TransformProfile::name);
    if (found != profiles_.end()) return *found;
    throw NotRecorded(fmt::format("the trace does not record the costs of encoding with {}", name));
  }

  void warn() {
    uses_.resize(rules_.size());
    for (std::size_t i = 0; i < rules_.size(); ++i) {
      if (uses_[i].matches_movable) continue;
      result_.warnings.push_back(fmt::format(
          "rule {} of the policy ({}) matches no saved tensor{}", i + 1, to_string(rules_[i].placement),
          uses_[i].matches_any ? " that can be offloaded" : " that no earlier rule matches"));
    }
  }

  const Policy& policy_;
  const std::vector<PolicyRule>& rules_;
  const StepProgram& program_;
  std::span<const TransformProfile> profiles_;
  StepPlacements result_;
  std::vector<std::int32_t> rule_of_;  ///< rule number by saved tensor; -1: none
  std::vector<Use> uses_;              ///< by rule
  double bytes_ = 0, ns_ = 0;          ///< bytes and time of all encodes, decodes and recomputations
};

}  // namespace

bool matches(const PolicyRule& rule, const RuleSubject& subject) {
  return matches_name(rule.op, subject.op) && matches_name(rule.module, subject.module) &&
         matches_name(rule.dtype, subject.dtype) && (!rule.rank || *rule.rank == subject.rank) &&
         is_within(rule.min_bytes, rule.max_bytes, subject.storage_bytes) &&
         is_within(rule.first, rule.last, subject.position);
}

StepPlacements choose_placements(const Policy& policy, const StepProgram& program,
                                 std::span<const TransformProfile> profiles) {
  if (policy.rules.empty()) return {};
  return RuleBook(policy, program, profiles).choose();
}

std::string transform_of(const StepPlacements& placements, SavedId tensor, const PackDecision& decision) {
  if (decision.copy < 0 || placements.by_tensor.empty()) return {};
  const RuledPlacement& rule = placements.by_tensor[tensor];
  return rule && rule->transform >= 0 ? placements.transforms[rule->transform] : std::string();
}

bool recomputes(const Policy& policy) {
  return std::ranges::any_of(
      policy.rules, [](const PolicyRule& rule) { return rule.placement.place == Place::kRecompute; });
}

std::vector<std::string> transforms_in(const std::vector<PolicyRule>& rules) {
  std::vector<std::string> names;
  for (const PolicyRule& rule : rules) {
    const std::string& name = rule.placement.transform;
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace offprof
