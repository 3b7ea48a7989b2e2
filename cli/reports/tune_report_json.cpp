#include "cli/reports/tune_report.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/placement_text.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

nlohmann::ordered_json to_json(const Candidate& candidate) {
  return {{"policy", to_json(candidate.policy)}, {"predicted", metrics_to_json(candidate.predicted)}};
}

const char* name_of(Constraint constraint) {
  switch (constraint) {
    case Constraint::kD2hBandwidth:
      return "d2h_bandwidth";
    case Constraint::kH2dBandwidth:
      return "h2d_bandwidth";
    case Constraint::kLatency:
      return "latency";
    case Constraint::kLaunch:
      return "launch";
  }
  return "";
}

/// Lists the goal's limit first, if one binds.
nlohmann::ordered_json binding_to_json(const TuneResult& result) {
  nlohmann::ordered_json binding = nlohmann::ordered_json::array();
  if (result.explanation.binding == GoalLimit::kDeviceMemory)
    binding.push_back({{"constraint", "device_memory"}});
  if (result.explanation.binding == GoalLimit::kSlowdown) binding.push_back({{"constraint", "max_slowdown"}});
  if (result.explanation.fills_host) binding.push_back({{"constraint", "host_memory"}});
  for (const Relief& relief : result.explanation.reliefs)
    binding.push_back({{"constraint", name_of(relief.constraint)}, {"gain_ns", relief.gain_ns}});
  return binding;
}

nlohmann::ordered_json prices_to_json(const TuneResult& result) {
  nlohmann::ordered_json prices = nlohmann::ordered_json::object();
  if (result.explanation.memory_price)
    prices["device_memory"] = {{"more_bytes", result.explanation.memory_price->more_bytes},
                               {"gain_ns", result.explanation.memory_price->gain_ns}};
  if (result.explanation.link_price) {
    prices["link"] = {{"factor", result.explanation.link_price->factor}};
    prices["link"].update(to_json(result.explanation.link_price->best));
  }
  return prices;
}

const char* name_of(BoundFamily family) {
  switch (family) {
    case BoundFamily::kOffload:
      return "offload";
    case BoundFamily::kOffloadAndRecompute:
      return "offload_and_recompute";
  }
  return "";
}

nlohmann::ordered_json bounds_to_json(const TuneReport& report) {
  const TuneResult& result = report.result;
  nlohmann::ordered_json bounds = {{"device_peak_bytes", result.device_peak_bound_bytes},
                                   {"step_time_ns", result.step_time_bound_ns}};
  if (result.goal_bound) {
    const char* key = report.goal.memory_budget_bytes ? "step_time_ns" : "device_peak_bytes";
    bounds["goal"] = {{key, result.goal_bound->value}, {"family", name_of(result.goal_bound->family)}};
  }
  return bounds;
}

nlohmann::ordered_json search_to_json(const TuneResult& result) {
  nlohmann::ordered_json search = {{"family",
                                    {{"settings_at_most", result.family.settings},
                                     {"replayed", result.family.replayed},
                                     {"is_whole", result.family.is_whole},
                                     {"slack_ns", result.family.slack_ns},
                                     {"frontier_is_exact", result.family.is_exact}}}};
  if (result.plans)
    search["plans"] = {{"movable", result.plans->versions},
                       {"replayed", result.plans->replayed},
                       {"is_whole", result.plans->is_whole},
                       {"is_exhaustive", result.plans->is_exhaustive}};
  return search;
}

/// Returns true if the Pareto frontier is exact. Plans are searched for the goal alone, so with plans the
/// frontier is exact only for thresholds.
bool frontier_is_exact(const TuneResult& result) {
  const bool has_plans = result.plans && result.plans->versions > 0;
  return result.family.is_exact && !has_plans;
}

}  // namespace

nlohmann::ordered_json to_json(const TuneReport& report) {
  const TuneResult& result = report.result;
  nlohmann::ordered_json json = {{"simulated", true}, {"trace", report.trace}};
  json["chosen"] = result.chosen ? to_json(*result.chosen) : nlohmann::ordered_json(nullptr);
  if (result.chosen) json.update(rate_to_json(report.step_size, result.chosen->predicted));
  if (report.step_range) json["step_time_range_ns"] = to_json(*report.step_range);
  if (report.times_are_modelled) json["alike"] = report.alike;
  if (result.fallback) json["fallback"] = to_json(*result.fallback);
  json["frontier"] = nlohmann::ordered_json::array();
  for (const Candidate& candidate : result.frontier) json["frontier"].push_back(to_json(candidate));
  json["frontier_is_exact"] = frontier_is_exact(result);
  json["bounds"] = bounds_to_json(report);
  if (result.goal_bound) json["gap"] = result.goal_bound->gap;
  if (result.chosen) {
    json["binding"] = binding_to_json(result);
    json["prices"] = prices_to_json(result);
  }
  json["keep"] = to_json(result.keep);
  json["trl"] = to_json(result.trl);
  if (const auto limit = report.goal.memory_limit()) json["device_memory_limit_bytes"] = *limit;
  json["policies_tried"] = result.policies_tried;
  json["search"] = search_to_json(result);
  if (result.placements) json["placements"] = to_json(*result.placements);
  if (!report.profile.empty()) json["profile"] = report.profile;
  if (!report.warnings.empty()) json["warnings"] = report.warnings;
  if (!report.settings.checkpointed.empty()) json["checkpoint"] = report.settings.checkpointed;
  if (report.settings.slices) json["slices"] = to_json(*report.settings.slices);
  if (report.configurations.size() > 1)
    json["configurations"] = configurations_to_json(report.configurations);
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  if (report.why) json["why"] = to_json(*report.why);
  return json;
}

}  // namespace offprof
