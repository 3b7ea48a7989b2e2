#include "cli/reports/tune_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/tune_verdict.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/placement_text.h"
#include "cli/terminal/text_table.h"
#include "traces/base/whole_number.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

constexpr std::size_t kFrontierRows = 12;

// --- The table ---

std::string relative(double value, double base) {
  return base > 0 ? fmt::format("{:+.1f}%", 100.0 * (value - base) / base) : "";
}

/// Returns the number of decimals: none from ten percent on, so that the table fits a terminal.
int decimals_of(double percent) {
  constexpr double kDecimalsBelow = 9.95;
  return percent < kDecimalsBelow ? 1 : 0;
}

/// Returns the slowdown relative to `base`.
std::string slowdown_text(Nanoseconds time, Nanoseconds base) {
  if (base <= 0) return "";
  const double percent = 100.0 * static_cast<double>(time - base) / static_cast<double>(base);
  return fmt::format("{:+.{}f}%", percent, decimals_of(percent));
}

/// Returns `0.02%`, `4.1%`, `150%`.
std::string share_text(double share) {
  constexpr double kLeast = 0.1;
  const double percent = 100 * share;
  return percent < kLeast ? fmt::format("{:.1g}%", percent)
                          : fmt::format("{:.{}f}%", percent, decimals_of(percent));
}

bool is_chosen(const TuneResult& result, std::size_t row) {
  return result.chosen && result.frontier[row].policy == result.chosen->policy;
}

std::string moved_text(const Policy& policy) {
  if (!policy.rules.empty()) return fmt::format("rules {}", policy.rules.size());
  if (policy.tensors) return fmt::format("plan {}", policy.tensors->size());
  return policy.threshold_bytes ? format_bytes(*policy.threshold_bytes) : "-";
}

std::string stash_text(const Policy& policy) {
  if (!policy.threshold_bytes && policy.rules.empty()) return "-";
  if (policy.stash_bytes) return format_bytes(*policy.stash_bytes);
  return fmt::format("{}{}", policy.stash_count.value_or(0), traits_of(policy.scheduler).stash_unit);
}

std::string prefetch_text(const Policy& policy) {
  return policy.prefetch_bytes > 0 ? format_bytes(policy.prefetch_bytes) : "-";
}

/// Returns the memory that a caching allocator reserves for the peak; without such an allocator, the
/// difference of the peak from keeping everything. Both columns together would not fit a terminal.
std::string beside_peak_text(const Metrics& predicted, const Metrics& keep) {
  if (predicted.device_reserved_peak_bytes) return format_bytes(*predicted.device_reserved_peak_bytes);
  return relative(static_cast<double>(*predicted.device_peak_bytes),
                  static_cast<double>(*keep.device_peak_bytes));
}

bool exceeds(const std::optional<Bytes>& limit, const Candidate& candidate) {
  return limit && device_bytes_taken(candidate.predicted) > *limit;
}

bool is_alike(const TuneReport& report, std::size_t row) {
  return std::ranges::find(report.alike, row) != report.alike.end();
}

class FrontierTable {
 public:
  FrontierTable(const TuneReport& report, bool has_host)
      : result_(report.result), limit_(report.goal.memory_limit()), has_host_(has_host), table_(columns()) {
    for (const std::size_t row : rows_to_show(result_))
      add(is_chosen(result_, row) ? ">"
          : is_alike(report, row) ? "~"
                                  : "",
          result_.frontier[row], is_chosen(result_, row) ? Tone::kGood : Tone::kPlain);
    table_.add_rule();
    add("keep", result_.keep, Tone::kFaint);
    add("trl", result_.trl, Tone::kFaint);
  }

  std::string render(const Page& page) const { return table_.render(page); }

 private:
  std::vector<TextTable::Column> columns() const {
    const bool is_reserved = result_.keep.predicted.device_reserved_peak_bytes.has_value();
    std::vector<TextTable::Column> columns = {{"", Align::kLeft},
                                              {"threshold"},
                                              {"stash"},
                                              {"prefetch"},
                                              {is_reserved ? "requested" : "device"},
                                              {is_reserved ? "reserved" : "peak"},
                                              {"step"},
                                              {""}};
    if (has_host_) columns.push_back({"host"});
    return columns;
  }

  void add(std::string mark, const Candidate& candidate, Tone tone) {
    if (exceeds(limit_, candidate)) mark += "!";
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
  std::optional<Bytes> limit_;
  bool has_host_;
  TextTable table_;
};

/// Returns the width of the table's widest line in columns.
std::size_t width_of(const std::string& table) {
  std::size_t width = 0;
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = std::min(table.find('\n', begin), table.size());
    width = std::max(width, display_width(std::string_view(table).substr(begin, end - begin)));
    begin = end + 1;
  }
  return width;
}

/// Explains the marks of policies that do not fit, and of those that are as fast as the chosen one as far as
/// the model can tell, if there are any.
std::string legend_text(const TuneReport& report, const Page& page) {
  const TuneResult& result = report.result;
  const std::optional<Bytes> limit = report.goal.memory_limit();
  const auto is_over = [&](const Candidate& candidate) { return exceeds(limit, candidate); };
  std::string text;
  if (std::ranges::any_of(result.frontier, is_over) || is_over(result.keep) || is_over(result.trl))
    text += wrap(fmt::format("!: does not fit into {}", format_bytes(*limit)), page.width, 0) + "\n";
  if (!report.alike.empty())
    text += wrap(std::string(kAlikeLegend) + "the chosen policy", page.width, 0) + "\n";
  return text;
}

/// Omits the column of host memory if the terminal is too narrow for it.
std::string frontier_text(const TuneReport& report, const Page& page) {
  const bool fits = width_of(FrontierTable(report, true).render({page.width, false})) <= page.width;
  return FrontierTable(report, fits).render(page) + legend_text(report, page);
}

// --- Sentences ---

/// Returns `12 345`.
std::string count_text(std::size_t count) {
  std::string text = std::to_string(count);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, " ");
  return text;
}

bool has_allocator(const TuneResult& result) {
  return result.keep.predicted.device_reserved_peak_bytes.has_value();
}

/// Returns the limits of a search that is complete but not exact.
std::string proviso_text(const TuneResult& result) {
  std::string text = has_allocator(result) ? " by peak memory" : "";
  if (result.slows_compute) return text + ", if copies do not slow compute down";
  if (result.meets_copies) return text + ", if offloading does not delay the program's own copies and waits";
  if (result.family.slack_ns > 0) text += " by more than " + format_duration(result.family.slack_ns);
  return text;
}

std::string family_text(const TuneResult& result) {
  return result.family.is_whole ? "no better one exists" + proviso_text(result) : "a sample";
}

std::string plans_text(const TuneResult& result) {
  std::string text = fmt::format(", {} plans for {} tensors", count_text(result.plans->replayed),
                                 count_text(result.plans->versions));
  if (!result.plans->is_whole || has_allocator(result)) return text;
  return text + " (no better plan exists for this goal" + proviso_text(result) + ")";
}

std::string headline_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text =
      fmt::format("{}: {} policies simulated", report.trace, count_text(result.policies_tried));
  if (result.family.settings > 0)
    text +=
        fmt::format(", {} settings of threshold, stash and prefetch window ({}; up to {:.2g} distinct ones)",
                    count_text(result.family.replayed), family_text(result), result.family.settings);
  if (result.plans && result.plans->replayed > 0) text += plans_text(result);
  return text + ". The table has the Pareto-optimal ones: no other has both less memory and less time.";
}

std::string place_text(const ProgramPlace& place) {
  if (place.phase.empty()) return "";
  return fmt::format(", in {}{}", place.phase, place.op.empty() ? "" : " at " + place.op);
}

/// Names the policies for which a bound holds.
std::string policies_of(BoundFamily family) {
  switch (family) {
    case BoundFamily::kOffload:
      return "that keeps or offloads tensors";
    case BoundFamily::kOffloadAndRecompute:
      return "that keeps, offloads or recomputes tensors";
  }
  return "";
}

/// States the bound for the goal, and for which policies it holds.
std::string goal_bound_text(const TuneReport& report, const GoalBound& bound) {
  constexpr double kNone = 5e-5;
  const std::string value = report.goal.memory_budget_bytes ? format_duration(to_whole(bound.value))
                                                            : format_bytes(to_whole(bound.value));
  const std::string distance = bound.gap < kNone
                                   ? "which the chosen policy reaches"
                                   : "and the chosen policy is " + share_text(bound.gap) + " above that";
  return fmt::format(" Lower bound for this goal: no policy {} goes below {}, {}.", policies_of(bound.family),
                     value, distance);
}

std::string bounds_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text = fmt::format(
      "Lower bounds for all policies of offprof's scheduler: {} of device memory, which the step itself "
      "needs{}, and {} per step.",
      format_bytes(result.device_peak_bound_bytes), place_text(report.least_place),
      format_duration(result.step_time_bound_ns));
  return result.goal_bound ? text + goal_bound_text(report, *result.goal_bound) : text;
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

/// Names the limit of the goal that binds.
std::string limit_text(const TuneReport& report) {
  switch (report.result.explanation.binding) {
    case GoalLimit::kDeviceMemory:
      return fmt::format("the budget of {}", format_bytes(*report.goal.memory_budget_bytes));
    case GoalLimit::kSlowdown:
      return fmt::format("the slowdown of {:g}%", 100 * report.goal.max_slowdown);
    case GoalLimit::kNone:
      break;
  }
  return "";
}

/// Names the limits that bind the chosen policy, and the cost of its copies.
std::string binding_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string limits = limit_text(report);
  if (result.explanation.fills_host)
    limits += std::string(limits.empty() ? "" : " and ") + "the limit of host memory";
  std::string costs;
  for (const Relief& relief : result.explanation.reliefs)
    costs += fmt::format("{}{} {}", costs.empty() ? "" : ", ", words_of(relief.constraint),
                         format_duration(relief.gain_ns));
  if (limits.empty() && costs.empty()) return "Nothing limits this policy.";
  if (limits.empty()) return "Cost of its copies: " + costs + ".";
  return "Limited by " + limits + "." +
         (costs.empty() ? " Its copies cost no time." : " Cost of its copies: " + costs + ".");
}

/// Formats a price as a lower bound. It compares only policies found for this goal: a search for another goal
/// may find better ones.
std::string price_of(const std::string& gain) {
  return gain.empty() ? "nothing, with the policies found" : "at least " + gain;
}

std::string link_price_text(const TuneReport& report) {
  const Candidate &now = *report.result.chosen, &then = report.result.explanation.link_price->best;
  const Bytes bytes = device_bytes_taken(now.predicted) - device_bytes_taken(then.predicted);
  const Nanoseconds time = *now.predicted.step_time_ns - *then.predicted.step_time_ns;
  std::string gain;
  if (!report.goal.memory_budget_bytes && bytes > 0)
    gain = format_bytes(bytes) + " of memory within the slowdown";
  else if (time > 0)
    gain = format_duration(time) + " per step";
  return fmt::format(" A link {:g} times as fast saves {}.", report.result.explanation.link_price->factor,
                     price_of(gain));
}

std::string prices_text(const TuneReport& report) {
  const TuneResult& result = report.result;
  std::string text = "More resources: ";
  if (result.explanation.memory_price) {
    const MemoryPrice& price = *result.explanation.memory_price;
    const double share =
        static_cast<double>(price.gain_ns) / static_cast<double>(*result.chosen->predicted.step_time_ns);
    const std::string gain =
        fmt::format("{} per step ({})", format_duration(price.gain_ns), share_text(share));
    text +=
        fmt::format("another {} of device memory saves {}.", format_bytes(price.more_bytes), price_of(gain));
  } else {
    text += "more device memory saves " + price_of("") + ".";
  }
  return result.explanation.link_price ? text + link_price_text(report) : text;
}

std::string wrapped(const std::string& text, const Page& page) {
  return wrap(text, page.width, 0) + "\n";
}

/// Names the policy that other programs get, and its figures in this one.
std::string fallback_text(const TuneResult& result) {
  if (!result.fallback) return {};
  return fmt::format(
      "In other programs a policy by rules takes the place of the plan: {}. In this one it takes {} and {}.",
      describe(result.fallback->policy), format_bytes(device_bytes_taken(result.fallback->predicted)),
      format_duration(*result.fallback->predicted.step_time_ns));
}

/// Describes the search and what limits the chosen policy.
std::string details_text(const TuneReport& report, const Page& page) {
  std::string text = "\n" + wrapped(headline_text(report), page) + placements_text(report.result, page);
  if (!report.result.chosen) return text + wrapped(bounds_text(report), page);
  text += to_text(*report.why, page);
  if (const std::string fallback = fallback_text(report.result); !fallback.empty())
    text += wrapped(fallback, page);
  return text + wrapped(bounds_text(report), page) + wrapped(binding_text(report), page) +
         wrapped(prices_text(report), page);
}

/// Names the assumptions behind the times.
std::string caveats_text(const TuneReport& report, const Page& page) {
  std::string text = times_line(report.times_are_modelled, page, report.step_range.has_value());
  if (!report.profile.empty())
    text += wrapped(fmt::format("Memory and link are those of {}; compute times stay those of the trace.",
                                report.profile),
                    page);
  if (!report.knows_recomputations && report.result.chosen &&
      report.result.chosen->policy != preset_policy("keep"))
    text += wrapped(
        "Recomputing tensors was not tried: the trace does not say which can be. Record it with --transforms "
        "recompute, or ask offprof advise, which tries checkpointing too.",
        page);
  for (const std::string& warning : report.warnings)
    text += page.paint(Tone::kWarning, wrap("warning: " + warning, page.width, 0)) + "\n";
  return text;
}

}  // namespace

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

std::string to_text(const TuneReport& report, const Page& page) {
  return verdict_text(report, page) + "\n" + configurations_text(report.configurations, page) +
         frontier_text(report, page) + reruns_text(report.settings, page) + caveats_text(report, page) +
         (page.details ? details_text(report, page) : "") +
         (report.result.chosen ? next_line(report.next, report.next_variables) : "");
}

}  // namespace offprof
