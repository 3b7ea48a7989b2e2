#include "cli/tune_command.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "cli/figure_text.h"
#include "cli/metrics_table.h"
#include "cli/options.h"
#include "cli/simulation_report.h"
#include "cli/text_table.h"
#include "simulator/tune.h"
#include "traces/error.h"
#include "traces/file.h"
#include "traces/fingerprint.h"
#include "traces/metrics_io.h"
#include "traces/policy_io.h"
#include "traces/trace_io.h"

namespace offprof {
namespace {

constexpr std::size_t kFrontierRows = 12;

struct TuneReport {
  std::string trace;
  TuneGoal goal;
  TuneResult result;
  std::optional<Explanation> why;  ///< of the chosen policy
  std::string output;
  bool times_are_modelled = false;
};

nlohmann::ordered_json to_json(const Candidate& candidate) {
  return {{"policy", to_json(candidate.policy)}, {"predicted", metrics_to_json(candidate.predicted)}};
}

nlohmann::ordered_json to_json(const TuneReport& report) {
  const TuneResult& result = report.result;
  nlohmann::ordered_json json = {{"simulated", true}, {"trace", report.trace}};
  json["chosen"] = result.chosen ? to_json(*result.chosen) : nlohmann::ordered_json(nullptr);
  json["frontier"] = nlohmann::ordered_json::array();
  for (const Candidate& candidate : result.frontier) json["frontier"].push_back(to_json(candidate));
  json["bounds"] = {{"device_peak_bytes", result.device_peak_bound_bytes},
                    {"step_time_ns", result.step_time_bound_ns}};
  json["keep"] = to_json(result.keep);
  json["trl"] = to_json(result.trl);
  json["policies_tried"] = result.policies_tried;
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  if (report.why) json["why"] = to_json(*report.why);
  return json;
}

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

/// The rows shown: the chosen one, the ends, and others spread evenly between.
std::vector<std::size_t> rows_to_show(const TuneResult& result) {
  std::vector<std::size_t> rows;
  const std::size_t count = result.frontier.size();
  for (std::size_t i = 0; i < count; ++i) {
    const bool is_chosen = result.chosen && result.frontier[i].policy == result.chosen->policy;
    const std::size_t before = i * (kFrontierRows - 1) / std::max<std::size_t>(count, 1);
    const std::size_t after = (i + 1) * (kFrontierRows - 1) / std::max<std::size_t>(count, 1);
    if (count <= kFrontierRows || i == 0 || is_chosen || before != after) rows.push_back(i);
  }
  return rows;
}

std::string threshold_text(const Policy& policy) {
  return policy.threshold_bytes ? format_bytes(*policy.threshold_bytes) : "-";
}

std::string stash_text(const Policy& policy) {
  if (!policy.threshold_bytes) return "-";
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

void add_row(TextTable& table, const std::string& mark, const Candidate& candidate, const TuneResult& result,
             Tone tone) {
  const Metrics& predicted = candidate.predicted;
  const Metrics& keep = result.keep.predicted;
  table.add_row({{mark, tone},
                 {threshold_text(candidate.policy), tone},
                 {stash_text(candidate.policy), tone},
                 {prefetch_text(candidate.policy), tone},
                 {format_bytes(*predicted.device_peak_bytes), tone},
                 {beside_peak_text(predicted, keep), tone},
                 {format_duration(*predicted.step_time_ns), tone},
                 {slowdown_text(*predicted.step_time_ns, *keep.step_time_ns), tone},
                 {format_bytes(*predicted.host_peak_bytes), tone}});
}

std::string frontier_text(const TuneResult& result, const Page& page) {
  TextTable table({{"", Align::kLeft},
                   {"threshold", Align::kRight},
                   {"stash", Align::kRight},
                   {"prefetch", Align::kRight},
                   {"device", Align::kRight},
                   {result.keep.predicted.device_reserved_peak_bytes ? "reserved" : "peak", Align::kRight},
                   {"step", Align::kRight},
                   {"", Align::kRight},
                   {"host", Align::kRight}});
  for (const std::size_t row : rows_to_show(result)) {
    const bool is_chosen = result.chosen && result.frontier[row].policy == result.chosen->policy;
    add_row(table, is_chosen ? ">" : "", result.frontier[row], result,
            is_chosen ? Tone::kGood : Tone::kPlain);
  }
  table.add_rule();
  add_row(table, "keep", result.keep, result, Tone::kFaint);
  add_row(table, "trl", result.trl, result, Tone::kFaint);
  return table.render(page);
}

std::string goal_text(const TuneGoal& goal) {
  if (goal.memory_budget_bytes)
    return fmt::format("the fastest within {}", format_bytes(*goal.memory_budget_bytes));
  return fmt::format("the least memory at no more than {:g}% slowdown", 100 * goal.max_slowdown);
}

std::string bounds_text(const TuneResult& result) {
  return fmt::format("No threshold, stash or prefetch can go below {} or {} a step.\n",
                     format_bytes(result.device_peak_bound_bytes),
                     format_duration(result.step_time_bound_ns));
}

std::string no_policy_text(const TuneReport& report) {
  const Candidate& least = least_memory(report.result);
  const Bytes taken = device_bytes_taken(least.predicted);
  return fmt::format("No policy fits into {}. The least reachable is {}{} ({} bytes): {}.",
                     format_bytes(*report.goal.memory_budget_bytes), format_bytes(taken),
                     least.predicted.device_reserved_peak_bytes ? " reserved" : "", taken,
                     describe(least.policy));
}

std::string chosen_text(const TuneReport& report, const Page& page) {
  if (!report.result.chosen) {
    const std::string refusal = no_policy_text(report);
    return page.paint(Tone::kBad, wrap(refusal, page.width, 0)) + "\n" + bounds_text(report.result);
  }
  std::string text =
      wrap(fmt::format("Chosen, {}: {}", goal_text(report.goal), describe(report.result.chosen->policy)),
           page.width, 0) +
      "\n\n";
  text += to_text(*report.why, page) + bounds_text(report.result);
  if (report.output.empty())
    return text + "Next: add -o policy.json, then: offprof run MODEL.pt --policy policy.json\n";
  return text + fmt::format("Next: offprof run MODEL.pt --policy {}\n", report.output);
}

std::string to_text(const TuneReport& report, const Page& page) {
  const std::string headline = fmt::format(
      "{}: {} policies simulated. Of these no other has less memory at as little time:", report.trace,
      report.result.policies_tried);
  return wrap(headline, page.width, 0) + "\n\n" + frontier_text(report.result, page) + "\n" +
         times_line(report.times_are_modelled, page) + chosen_text(report, page);
}

/// `5%`, or `0.05`.
double parse_slowdown(const std::string& text) {
  double value = 0;
  const bool percent = text.ends_with('%');
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  const auto [parsed, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc{} || parsed != end || value < 0)
    throw input_error("'" + text + "' is no slowdown", "Give a percentage, as in 5%");
  return percent ? value / 100 : value;
}

class TuneCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    add_trace_option(app, trace_path_, "The trace of a run");
    CLI::Option* budget = add_bytes_option(app, "--memory-budget", goal_.memory_budget_bytes,
                                           "Find the fastest policy that takes no more of the device: its "
                                           "peak, or with a caching allocator what that reserves");
    add_parsed_option(
        app, "--max-slowdown", "PERCENT",
        [this](const std::string& text) { goal_.max_slowdown = parse_slowdown(text); },
        "Find the least memory within that slowdown over keeping everything (default 5%)")
        ->excludes(budget);
    add_bytes_option(app, "--host-memory", goal_.host_memory_bytes,
                     "Cap of host memory for offloaded tensors");
    add_link_option(app, link_, "The link to assume, in each direction (default: as the run measured it)");
    add_output_option(app, output_, "The chosen policy (default: none)");
  }

  ExitStatus run(Context& context) override {
    const Trace trace = read_trace(trace_path_);
    if (trace.simulated)
      context.note(
          "the trace is simulated: its compute times are those of the run that it was simulated from");
    if (!output_.empty()) check_writable(output_);
    const TraceSteps steps(trace);
    const Link link = link_to_assume(link_, trace.environment.link);
    TuneReport report{trace_path_,  goal_,   tune(steps, link, goal_),
                      std::nullopt, output_, trace.environment.times_are_modelled};
    if (report.result.chosen) {
      report.why = explain(steps, report.result.chosen->policy, link);
      if (!output_.empty()) context.print(policy_text(*report.result.chosen, trace), output_);
    }
    context.publish_beside(report, output_);
    return report.result.chosen ? ExitStatus::kOk : ExitStatus::kGateFailed;
  }

 private:
  static std::string policy_text(const Candidate& chosen, const Trace& trace) {
    return format_policy_file(
        {chosen.policy, chosen.predicted, fingerprint_of_run(trace.model, trace.settings)});
  }

  std::string trace_path_;
  TuneGoal goal_;
  std::optional<Link> link_;
  std::string output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_tune_command() {
  return std::make_unique<TuneCommand>();
}

}  // namespace offprof
