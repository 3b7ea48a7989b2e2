#include "simulator/tuner/rule_policy.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "simulator/tuner/settings/parallel.h"
#include "traces/base/check.h"
#include "traces/model/step_program.h"

namespace offprof {
namespace {

/// Most cut-offs that are tried. They matter only for groups of which a plan offloads a part.
constexpr std::size_t kMostCutOffs = 16;

/// Bytes of the tensors of one operator, module and storage size.
struct Tally {
  Bytes offloaded = 0, all = 0;
  double share() const { return static_cast<double>(offloaded) / static_cast<double>(all); }
};

using Sizes = std::map<Bytes, Tally>;
using Modules = std::map<std::string, Sizes>;
/// The modules by operator and by the pattern that all layers share.
using Groups = std::map<std::pair<std::string, std::string>, Modules>;

/// Returns a pattern that matches the name alone. Patterns have no escape character.
std::string exactly(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    const bool is_special = c == '*' || c == '?' || c == '[';
    pattern += is_special ? std::string{'[', c, ']'} : std::string{c};
  }
  return pattern;
}

/// Returns the pattern of a module in all layers: `layers.3.mlp` gives `layers.*.mlp`.
std::string of_all_layers(std::string_view module) {
  std::string pattern;
  while (true) {
    const std::size_t dot = module.find('.');
    const std::string_view part = module.substr(0, dot);
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
    pattern += is_number ? "*" : exactly(part);
    if (dot == std::string_view::npos) return pattern;
    pattern += '.';
    module.remove_prefix(dot + 1);
  }
}

Bytes bytes_of_storage(const StepProgram& program, const SavedTensor& saved) {
  return saved.storage < 0 ? 0 : program.storages[saved.storage].bytes;
}

/// Returns the size of the smallest storage that the policy's plan offloads; nullopt: it offloads nothing.
std::optional<Bytes> smallest_offloaded(const StepProgram& program, const Policy& policy) {
  std::optional<Bytes> smallest;
  for (const std::int32_t tensor : *policy.tensors) {
    const Bytes bytes = bytes_of_storage(program, program.saved[tensor]);
    if (policy.threshold_bytes && bytes >= *policy.threshold_bytes)
      smallest = std::min(smallest.value_or(bytes), bytes);
  }
  return smallest;
}

/// Returns the groups of the movable tensors of at least `threshold` bytes.
Groups groups_of(const StepProgram& program, const std::vector<std::int32_t>& plan, Bytes threshold) {
  Groups groups;
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    const SavedTensor& saved = program.saved[i];
    const Bytes bytes = bytes_of_storage(program, saved);
    if (saved.movability != Movability::kMovable || bytes < std::max<Bytes>(threshold, 1)) continue;
    const std::string module = saved.module < 0 ? std::string() : program.names[saved.module];
    Tally& tally = groups[{program.names[saved.op], of_all_layers(module)}][module][bytes];
    tally.all += bytes;
    if (std::ranges::binary_search(plan, static_cast<std::int32_t>(i))) tally.offloaded += bytes;
  }
  return groups;
}

/// Returns the cut-offs to try, each with another effect: a group is offloaded if its share is above one.
std::vector<double> cut_offs_of(const Groups& groups) {
  std::set<double> shares = {0};
  for (const auto& [key, modules] : groups)
    for (const auto& [module, sizes] : modules)
      for (const auto& [size, tally] : sizes)
        if (tally.offloaded < tally.all) shares.insert(tally.share());
  const std::vector<double> sorted(shares.begin(), shares.end());
  const std::size_t count = std::min(sorted.size(), kMostCutOffs);
  std::vector<double> chosen;
  for (std::size_t i = 0; i < count; ++i)
    chosen.push_back(sorted[count == 1 ? 0 : i * (sorted.size() - 1) / (count - 1)]);
  return chosen;
}

/// Writes the rules that keep what a cut-off does not offload; the threshold offloads the rest.
class RuleWriter {
 public:
  explicit RuleWriter(double cut_off) : cut_off_(cut_off) {}

  std::vector<PolicyRule> write(const Groups& groups) {
    for (const auto& [key, modules] : groups) {
      op_ = exactly(key.first);
      if (std::ranges::all_of(modules, [this](const auto& each) { return is_kept(each.second); }))
        add(key.second);
      else
        for (const auto& [module, sizes] : modules) write(exactly(module), sizes);
    }
    return std::move(rules_);
  }

 private:
  bool is_kept(const Tally& tally) const { return tally.share() <= cut_off_; }
  bool is_kept(const Sizes& sizes) const {
    return std::ranges::all_of(sizes, [this](const auto& each) { return is_kept(each.second); });
  }

  void write(const std::string& module, const Sizes& sizes) {
    if (is_kept(sizes)) {
      add(module);
      return;
    }
    for (const auto& [size, tally] : sizes) {
      if (!is_kept(tally)) continue;
      PolicyRule& rule = add(module);
      rule.min_bytes = rule.max_bytes = size;
    }
  }

  PolicyRule& add(const std::string& module) {
    PolicyRule& rule = rules_.emplace_back();
    rule.op = op_;
    // No pattern matches the empty path alone, so the rule is wider there: it covers all modules.
    if (!module.empty()) rule.module = module;
    rule.placement.place = Place::kDevice;
    return rule;
  }

  double cut_off_;
  std::string op_;
  std::vector<PolicyRule> rules_;
};

}  // namespace

RulePolicySearch search_rule_policies(const TuneInputs& inputs, const GoalOrder& order, const Candidate& plan,
                                      const std::optional<Candidate>& by_threshold) {
  OFFPROF_CHECK(plan.policy.tensors.has_value());
  const StepProgram& program = inputs.steps.program(plan.policy);
  Policy base = plan.policy;
  base.tensors.reset();
  base.threshold_bytes = smallest_offloaded(program, plan.policy);
  std::vector<Policy> policies = {base};
  if (base.threshold_bytes) {
    const Groups groups = groups_of(program, *plan.policy.tensors, *base.threshold_bytes);
    for (const double cut_off : cut_offs_of(groups)) {
      policies.push_back(base);
      std::ranges::copy(RuleWriter(cut_off).write(groups), std::back_inserter(policies.back().rules));
    }
  }
  std::vector<Candidate> candidates(policies.size());
  for_each_index(policies.size(), inputs.goal.threads, [&](std::size_t i) {
    candidates[i] = {policies[i], inputs.steps.predict(policies[i], inputs.link)};
  });
  RulePolicySearch result{{}, candidates.size()};
  if (by_threshold) candidates.push_back(*by_threshold);
  result.best = *std::ranges::min_element(
      candidates, {}, [&](const Candidate& candidate) { return order.distance(candidate); });
  return result;
}

}  // namespace offprof
