#include "cli/tune_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/figure_text.h"
#include "cli/text_table.h"
#include "traces/metrics_io.h"
#include "traces/policy_io.h"

namespace offprof {
namespace {

constexpr std::size_t kFrontierRows = 12;

// --- JSON ---

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

nlohmann::ordered_json binding_to_json(const TuneResult& result) {
  nlohmann::ordered_json binding = nlohmann::ordered_json::array();
  if (result.memory_price) binding.push_back({{"constraint", "device_memory"}});
  if (result.fills_host) binding.push_back({{"constraint", "host_memory"}});
  for (const Relief& relief : result.reliefs)
    binding.push_back({{"constraint", name_of(relief.constraint)}, {"gain_ns", relief.gain_ns}});
  return binding;
}

nlohmann::ordered_json prices_to_json(const TuneResult& result) {
  nlohmann::ordered_json prices = nlohmann::ordered_json::object();
  if (result.memory_price)
    prices["device_memory"] = {{"more_bytes", result.memory_price->more_bytes},
                               {"gain_ns", result.memory_price->gain_ns}};
  if (result.link_price) {
    prices["link"] = {{"factor", result.link_price->factor}};
    prices["link"].update(to_json(result.link_price->best));
  }
  return prices;
}

nlohmann::ordered_json bounds_to_json(const TuneReport& report) {
  const TuneResult& result = report.result;
  nlohmann::ordered_json bounds = {{"device_peak_bytes", result.device_peak_bound_bytes},
                                   {"step_time_ns", result.step_time_bound_ns}};
  if (result.goal_bound) {
    const char* key = report.goal.memory_budget_bytes ? "step_time_ns" : "device_peak_bytes";
    bounds["goal"] = {{key, result.goal_bound->value}};
  }
  return bounds;
}

nlohmann::ordered_json search_to_json(const TuneResult& result) {
  nlohmann::ordered_json search = {{"family",
                                    {{"settings_at_most", result.family.settings},
                                     {"replayed", result.family.replayed},
                                     {"is_whole", result.family.is_whole},
                                     {"frontier_is_exact", result.family.is_exact}}}};
  if (result.plans)
    search["plans"] = {{"movable", result.plans->versions},
                       {"replayed", result.plans->replayed},
                       {"is_exhaustive", result.plans->is_exhaustive}};
  return search;
}

// --- The table ---

std::string relative(double value, double base) {
  return base > 0 ? fmt::format("{:+.1f}%", 100.0 * (value - base) / base) : "";
}

/// How much longer than `base`; from ten percent on without decimals, so that the table fits a terminal.
std::string slowdown_text(Nanoseconds time, Nanoseconds base) {
  constexpr double kDecimalsBelow = 9.95;
  if (base <= 0) return "";
  const double percent = 100.0 * static_cast<double>(time - base) / static_cast<double>(base);
  return percent < kDecimalsBelow ? fmt::format("{:+.1f}%", percent) : fmt::format("{:+.0f}%", percent);
}

bool is_chosen(const TuneResult& result, std::size_t row) {
  return result.chosen && result.frontier[row].policy == result.chosen->policy;
}

/// The rows shown: the chosen one, the ends, and others spread evenly between.
std::vector<std::size_t> rows_to_show(const TuneResult& result) {
  std::vector<std::size_t> rows;
  const std::size_t count = result.frontier.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t before = i * (kFrontierRows - 1) / std::max<std::size_t>(count, 1);
    const std::size_t after = (i + 1) * (kFrontierRows - 1) / std::max<std::size_t>(count, 1);
    if (count <= kFrontierRows || i == 0 || is_chosen(result, i) || before != after) rows.push_back(i);
  }
  return rows;
}

std::string moved_text(const Policy& policy) {
  if (policy.tensors) return fmt::format("plan {}", policy.tensors->size());
  return policy.threshold_bytes ? format_bytes(*policy.threshold_bytes) : "-";
}

std::string stash_text(const Policy& policy) {
  if (!policy.threshold_bytes) return "-";
  if (policy.stash_bytes) return format_bytes(*policy.stash_bytes);
  const char* unit = policy.scheduler == SchedulerKind::kTrl ? " ids" : "";
  return std::to_string(policy.stash_count.value_or(0)) + unit;
}

std::string prefetch_text(const Policy& policy) {
  return policy.prefetch_bytes > 0 ? format_bytes(policy.prefetch_bytes) : "-";
}

/// What a caching allocator takes of the device for the peak, or, where there is none, how the peak compares:
/// both at once do not fit a terminal.
std::string beside_peak_text(const Metrics& predicted, const Metrics& keep) {
  if (predicted.device_reserved_peak_bytes) return format_bytes(*predicted.device_reserved_peak_bytes);
  return relative(static_cast<double>(*predicted.device_peak_bytes),
                  static_cast<double>(*keep.device_peak_bytes));
}

class FrontierTable {
 public:
  FrontierTable(const TuneResult& result, bool has_host)
      : result_(result), has_host_(has_host), table_(columns()) {
    for (const std::size_t row : rows_to_show(result))
      add(is_chosen(result, row) ? ">" : "", result.frontier[row],
          is_chosen(result, row) ? Tone::kGood : Tone::kPlain);
    table_.add_rule();
    add("keep", result.keep, Tone::kFaint);
    add("trl", result.trl, Tone::kFaint);
  }

  std::string render(const Page& page) const { return table_.render(page); }

 private:
  std::vector<TextTable::Column> columns() const {
    const bool is_reserved = result_.keep.predicted.device_reserved_peak_bytes.has_value();
    std::vector<TextTable::Column> columns = {{"", Align::kLeft}, {"threshold"},
                                              {"stash"},          {"prefetch"},
                                              {"device"},         {is_reserved ? "reserved" : "peak"},
                                              {"step"},           {""}};
    if (has_host_) columns.push_back({"host"});
    return columns;
  }

  void add(const std::string& mark, const Candidate& candidate, Tone tone) {
    const Metrics& predicted = candidate.predicted;
    const Metrics& keep = result_.keep.predicted;
    std::vector<TextTable::Cell> cells = {{mark, tone},
                                          {moved_text(candidate.policy), tone},
                                          {stash_text(candidate.policy), tone},
                                          {prefetch_text(candidate.policy), tone},
                                          {format_bytes(*predicted.device_peak_bytes), tone},
                                          {beside_peak_text(predicted, keep), tone},
                                          {format_duration(*predicted.step_time_ns), tone},
                                          {slowdown_text(*predicted.step_time_ns, *keep.step_time_ns), tone}};
    if (has_host_) cells.emplace_back(format_bytes(*predicted.host_peak_bytes), tone);
    table_.add_row(std::move(cells));
  }

  const TuneResult& result_;
  bool has_host_;
  TextTable table_;
};

/// Columns of its widest line.
std::size_t width_of(const std::string& table) {
  std::size_t width = 0;
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = std::min(table.find('\n', begin), table.size());
    width = std::max(width, display_width(std::string_view(table).substr(begin, end - begin)));
    begin = end + 1;
  }
  return width;
}

/// Without the host's column where a terminal is too narrow for it.
std::string frontier_text(const TuneResult& result, const Page& page) {
  const bool fits = width_of(FrontierTable(result, true).render({page.width, false})) <= page.width;
  return FrontierTable(result, fits).render(page);
}

// --- Sentences ---

/// `12 345`.
std::string count_text(std::size_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, " ");
  return text;
}

const char* family_text(const FamilySearch& family) {
  if (family.is_exact) return "none better";
  return family.is_whole ? "none better, slow-down by copies aside" : "a sample";
}

std::string headline_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text =
      fmt::format("{}: {} policies simulated", report.trace, count_text(result.policies_tried));
  if (result.family.settings > 0)
    text +=
        fmt::format(", {} of thresholds, stashes and windows ({} of the up to {:.2g} that can differ)",
                    count_text(result.family.replayed), family_text(result.family), result.family.settings);
  if (result.plans && result.plans->replayed > 0)
    text += fmt::format(", {} of plans for {} tensors{}", count_text(result.plans->replayed),
                        count_text(result.plans->versions),
                        result.plans->is_exhaustive ? " (none better for this goal)" : "");
  return text + ". Of these no other has less memory at as little time:";
}

std::string goal_text(const TuneGoal& goal) {
  if (goal.memory_budget_bytes)
    return fmt::format("the fastest within {}", format_bytes(*goal.memory_budget_bytes));
  return fmt::format("the least memory at no more than {:g}% slowdown", 100 * goal.max_slowdown);
}

std::string place_text(const ProgramPlace& place) {
  if (place.phase.empty()) return "";
  return fmt::format(", in {}{}", place.phase, place.op.empty() ? "" : " at " + place.op);
}

std::string bounds_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text = fmt::format("No policy goes below {}, which the program itself holds{}, or {} a step.",
                                 format_bytes(result.device_peak_bound_bytes), place_text(report.least_place),
                                 format_duration(result.step_time_bound_ns));
  if (!result.goal_bound) return text;
  const GoalBound& bound = *result.goal_bound;
  const std::string value = report.goal.memory_budget_bytes
                                ? format_duration(static_cast<Nanoseconds>(bound.value))
                                : format_bytes(static_cast<Bytes>(bound.value));
  constexpr double kNone = 5e-5;
  if (bound.gap < kNone)
    return text + fmt::format(" For this goal none goes below {}: there is no better.", value);
  return text +
         fmt::format(" For this goal none goes below {}: this one is {:.2g}% above.", value, 100 * bound.gap);
}

std::string words_of(Constraint constraint) {
  switch (constraint) {
    case Constraint::kD2hBandwidth:
      return "the link's bandwidth to the host";
    case Constraint::kH2dBandwidth:
      return "the link's bandwidth to the device";
    case Constraint::kLatency:
      return "the link's latency";
    case Constraint::kLaunch:
      return "launching copies";
  }
  return "";
}

/// What holds the chosen policy back.
std::string binding_text(const TuneResult& result) {
  std::string text;
  for (const Relief& relief : result.reliefs)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(relief.constraint),
                        format_duration(relief.gain_ns));
  if (result.fills_host) text += text.empty() ? "the host memory's cap" : ", and the host memory's cap binds";
  return text.empty() ? "Nothing that copies cost holds it back." : "What holds it back: " + text + ".";
}

std::string link_price_text(const TuneReport& report) {
  const Metrics& now = report.result.chosen->predicted;
  const Metrics& then = report.result.link_price->best.predicted;
  const std::string begin = fmt::format(" A link {:g} times as fast: ", report.result.link_price->factor);
  if (report.goal.memory_budget_bytes) {
    const Nanoseconds gain = *now.step_time_ns - *then.step_time_ns;
    return begin + (gain > 0 ? fmt::format("{} less.", format_duration(gain)) : "nothing.");
  }
  const Bytes gain = *now.device_peak_bytes - *then.device_peak_bytes;
  if (gain > 0) return begin + fmt::format("{} less memory within the slowdown.", format_bytes(gain));
  const Nanoseconds time = *now.step_time_ns - *then.step_time_ns;
  return begin + (time > 0 ? fmt::format("{} less.", format_duration(time)) : "nothing.");
}

std::string prices_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text = "What more would buy: ";
  if (result.memory_price) {
    const MemoryPrice& price = *result.memory_price;
    const double percent = 100.0 * static_cast<double>(price.gain_ns) /
                           static_cast<double>(*result.chosen->predicted.step_time_ns);
    text += fmt::format("another {} of device memory {} a step ({:.2g}%).", format_bytes(price.more_bytes),
                        format_duration(price.gain_ns), percent);
  } else {
    text += "device memory nothing.";
  }
  return result.link_price ? text + link_price_text(report) : text;
}

std::string no_policy_text(const TuneReport& report) {
  const Candidate& least = least_memory(report.result);
  const Bytes taken = device_bytes_taken(least.predicted);
  return fmt::format("No policy fits into {}. The least reachable is {}{} ({} bytes): {}.",
                     format_bytes(*report.goal.memory_budget_bytes), format_bytes(taken),
                     least.predicted.device_reserved_peak_bytes ? " reserved" : "", taken,
                     describe(least.policy));
}

std::string wrapped(const std::string& text, const Page& page) {
  return wrap(text, page.width, 0) + "\n";
}

std::string chosen_text(const TuneReport& report, const Page& page) {
  if (!report.result.chosen)
    return page.paint(Tone::kBad, wrap(no_policy_text(report), page.width, 0)) + "\n" +
           wrapped(bounds_text(report), page);
  std::string text =
      wrapped(fmt::format("Chosen, {}: {}", goal_text(report.goal), describe(report.result.chosen->policy)),
              page) +
      "\n" + to_text(*report.why, page);
  text += wrapped(bounds_text(report), page) + wrapped(binding_text(report.result), page) +
          wrapped(prices_text(report), page);
  if (report.output.empty())
    return text + "Next: add -o policy.json, then: offprof run MODEL.pt --policy policy.json\n";
  return text + fmt::format("Next: offprof run MODEL.pt --policy {}\n", report.output);
}

/// What the times rest on.
std::string caveats_text(const TuneReport& report, const Page& page) {
  std::string text = times_line(report.times_are_modelled, page);
  if (!report.profile.empty())
    text += wrapped(fmt::format("Memory and link are those of {}; compute times stay those of the trace.",
                                report.profile),
                    page);
  for (const std::string& warning : report.warnings)
    text += page.paint(Tone::kWarning, wrap("warning: " + warning, page.width, 0)) + "\n";
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const TuneReport& report) {
  const TuneResult& result = report.result;
  nlohmann::ordered_json json = {{"simulated", true}, {"trace", report.trace}};
  json["chosen"] = result.chosen ? to_json(*result.chosen) : nlohmann::ordered_json(nullptr);
  json["frontier"] = nlohmann::ordered_json::array();
  for (const Candidate& candidate : result.frontier) json["frontier"].push_back(to_json(candidate));
  json["frontier_is_exact"] = result.family.is_exact;
  json["bounds"] = bounds_to_json(report);
  if (result.goal_bound) json["gap"] = result.goal_bound->gap;
  if (result.chosen) {
    json["binding"] = binding_to_json(result);
    json["prices"] = prices_to_json(result);
  }
  json["keep"] = to_json(result.keep);
  json["trl"] = to_json(result.trl);
  json["policies_tried"] = result.policies_tried;
  json["search"] = search_to_json(result);
  if (!report.profile.empty()) json["profile"] = report.profile;
  if (!report.warnings.empty()) json["warnings"] = report.warnings;
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  if (report.why) json["why"] = to_json(*report.why);
  return json;
}

std::string to_text(const TuneReport& report, const Page& page) {
  return wrapped(headline_text(report), page) + "\n" + frontier_text(report.result, page) + "\n" +
         caveats_text(report, page) + chosen_text(report, page);
}

}  // namespace offprof
