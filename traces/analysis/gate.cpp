#include "traces/analysis/gate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <numeric>
#include <string_view>

#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

constexpr const char* kLimitHint =
    "Write KEY<=+10%, KEY<=+64MiB (relative to the baseline), KEY<=+3sd (standard deviations of a time) or "
    "KEY<=8GiB (absolute); use >= for a minimum.";

constexpr std::string_view kDeviations = "sd";

/// Figure of Metrics or of its spread.
struct Figure {
  MetricUnit unit;
  std::optional<double> (*get)(const Metrics&, const std::string& key);
};

std::optional<double> get_metric(const Metrics& metrics, const std::string& key) {
  return find_metric(key)->get(metrics);
}

std::optional<double> get_spread(const Metrics& metrics, const std::string& key) {
  const auto found = metrics.spread.find(key);
  return found == metrics.spread.end() ? std::nullopt : std::optional(static_cast<double>(found->second));
}

std::optional<Figure> find_figure(const std::string& key) {
  if (const MetricKey* metric = find_metric(key)) return Figure{metric->unit, get_metric};
  for (const std::string_view suffix : {"_min", "_max"}) {
    if (!key.ends_with(suffix)) continue;
    const MetricKey* metric = find_metric(key.substr(0, key.size() - suffix.size()));
    if (metric != nullptr) return Figure{metric->unit, get_spread};
  }
  return std::nullopt;
}

Error unknown_key(const std::string& key) {
  std::vector<std::string> names;
  for (const MetricKey& metric : metric_keys()) names.emplace_back(metric.name);
  const std::string suggestion = did_you_mean(key, names);
  return input_error(
      fmt::format("unknown figure '{}'", key),
      fmt::format("{}{}Figures: {}.", suggestion, suggestion.empty() ? "" : " ", fmt::join(names, ", ")));
}

double parse_number(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end && std::isfinite(value) && value >= 0) return value;
  throw input_error(fmt::format("'{}' is not a number", text), kLimitHint);
}

bool is_plain_number(const std::string& text) {
  return text.find_first_not_of("0123456789.") == std::string::npos;
}

double parse_quantity(MetricUnit unit, const std::string& text) {
  if (unit == MetricUnit::kBytes) return static_cast<double>(parse_bytes(text));
  if (unit == MetricUnit::kRatio || is_plain_number(text)) return parse_number(text);
  return static_cast<double>(parse_duration(text));
}

/// Parses the text after `<=`.
void parse_bound(std::string text, MetricUnit unit, Limit& limit) {
  const char sign = text.empty() ? '\0' : text.front();
  const bool is_relative = sign == '+' || sign == '-';
  if (is_relative) text.erase(0, 1);
  const bool is_percent = text.ends_with('%');
  if (is_percent) text.pop_back();
  if (is_percent && !is_relative) {
    throw input_error(fmt::format("'{}%' has no sign", text), "Write +10% for 10% above the baseline.");
  }
  const bool is_deviations = is_relative && text.ends_with(kDeviations);
  if (is_deviations) text.erase(text.size() - kDeviations.size());
  if (is_deviations && unit != MetricUnit::kNanoseconds)
    throw input_error(fmt::format("'{}' is not a time, so that it has no standard deviation", limit.key),
                      kLimitHint);
  limit.form = is_percent      ? Limit::Form::kPercent
               : is_deviations ? Limit::Form::kDeviations
               : is_relative   ? Limit::Form::kAmount
                               : Limit::Form::kAbsolute;
  limit.value = is_percent || is_deviations ? parse_number(text) : parse_quantity(unit, text);
  if (sign == '-') limit.value = -limit.value;
}

bool depends_on_time(MetricUnit unit) {
  return unit != MetricUnit::kBytes;
}

/// Returns true for a time of a run on a GPU whose tracer lost records, except the step time, which the host
/// measures. For a simulation of such a run the step time counts as incomplete, too.
bool is_incomplete(const StepSummary& figures, const std::string& key) {
  if (!figures.tracing || !figures.tracing->lost_records()) return false;
  if (!depends_on_time(find_figure(key).value().unit)) return false;
  return figures.simulated.value_or(false) || !key.starts_with("step_time_ns");
}

/// Values of a figure in the runs of a baseline.
struct BaselineRuns {
  std::optional<double> value{};  ///< of a time the mean, otherwise of the newest run
  double deviation = 0;           ///< sample standard deviation, at least kLeastDeviation of the mean
  std::size_t count = 0;
};

BaselineRuns runs_of(const StepSummary& base, const std::string& key, const Figure& figure) {
  std::vector<double> values;
  for (const Metrics& metrics : base.earlier)
    if (const auto value = figure.get(metrics, key)) values.push_back(*value);
  const auto newest = figure.get(base.metrics, key);
  if (!newest) return {};
  values.push_back(*newest);
  const auto count = static_cast<double>(values.size());
  BaselineRuns runs{.value = newest, .count = values.size()};
  if (figure.unit != MetricUnit::kNanoseconds) return runs;
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  runs.value = mean;
  runs.deviation = std::max(values.size() < 2 ? 0 : std::sqrt(squares / (count - 1)), kLeastDeviation * mean);
  return runs;
}

std::string without_blanks(std::string text) {
  std::erase(text, ' ');
  return text;
}

/// Compares figures and collects the rows of the verdict.
class Gate {
 public:
  Gate(const StepSummary& base, const StepSummary& now, const GateOptions& options)
      : base_(base), now_(now), options_(options), differences_(run_differences(base, now)) {}

  GateResult judge() {
    for (const RunDifference& difference : differences_) judge_difference(difference);
    const bool by_default = options_.limits.empty();
    const std::size_t runs = base_.earlier.size() + 1;
    for (const Limit& limit : by_default ? default_limits(runs) : options_.limits)
      judge_limit(limit, by_default);
    if (!checked_a_figure_) throw nothing_to_check();
    verdict_.ok = std::ranges::all_of(verdict_.checks, &Check::ok);
    return std::move(verdict_);
  }

 private:
  /// Returns true if the models have the same name and different content. The gate exists to check such
  /// changes, so it does not reject them.
  bool is_changed_model(const RunDifference& difference) const {
    return difference.what == "model" && base_.model->name == now_.model->name;
  }

  void judge_difference(const RunDifference& difference) {
    if (difference.what == "link") return;  // each run measures it anew, so it always differs a little
    const bool is_refused = difference.what == "device" || difference.what == "LibTorch";
    if (is_refused && !options_.allow_different) throw other_baseline(difference);
    constexpr auto kMustBeSame = std::to_array<std::string_view>({"model", "inputs", "loss", "optimizer"});
    const bool must_be_same = std::ranges::find(kMustBeSame, difference.what) != kMustBeSame.end();
    if (must_be_same && !options_.allow_different && !is_changed_model(difference)) {
      Check check{.key = difference.what, .limit = "same"};
      check.baseline_text = difference.base;
      check.value_text = difference.now;
      verdict_.checks.push_back(std::move(check));
    } else {
      note(fmt::format("not the same {}: baseline {}; now {}", difference.what, difference.base,
                       difference.now));
    }
  }

  void judge_limit(const Limit& limit, bool by_default) {
    const Figure figure = find_figure(limit.key).value();
    Check check{.key = limit.key, .unit = figure.unit};
    const BaselineRuns runs = runs_of(base_, limit.key, figure);
    check.baseline = runs.value;
    check.value = figure.get(now_.metrics, limit.key);
    check.limit = limit.text;
    const bool complete = check.value && (check.baseline || !limit.needs_baseline());
    if (by_default && !complete) return note_missing(check);
    if (!records_suffice(limit, by_default)) return;
    if (limit.needs_baseline() && depends_on_time(figure.unit) && !times_compare(limit, by_default)) return;
    if (complete) {
      if (limit.form == Limit::Form::kDeviations) explain_deviation(limit, runs);
      check.bound = limit.bound(check.baseline.value_or(0), runs.deviation);
      check.ok =
          limit.side == Limit::Side::kAtMost ? *check.value <= *check.bound : *check.value >= *check.bound;
    } else {
      check.why = check.value ? "not in the baseline" : "not in the trace or report";
    }
    checked_a_figure_ = true;
    verdict_.checks.push_back(std::move(check));
  }

  /// Notes the size of a standard deviation. Throws if there are too few runs for one.
  void explain_deviation(const Limit& limit, const BaselineRuns& runs) {
    if (runs.count < kLeastRunsForDeviation)
      throw input_error(fmt::format("limit '{}{}' needs a baseline of at least {} runs; {} has {}", limit.key,
                                    limit.text, kLeastRunsForDeviation, base_.source, runs.count),
                        "Add runs to it with --add.");
    note(fmt::format("{}: mean {}, standard deviation {} over {} runs of the baseline", limit.key,
                     format_metric(MetricUnit::kNanoseconds, *runs.value),
                     format_metric(MetricUnit::kNanoseconds, runs.deviation), runs.count));
  }

  /// Returns true if times of the two runs can be compared.
  bool times_compare(const Limit& limit, bool by_default) {
    if (options_.allow_different) return true;
    const auto source = std::ranges::find(differences_, "source of figures", &RunDifference::what);
    if (!by_default && source != differences_.end()) throw other_source(limit, *source);
    const RunDifference* difference = time_difference(differences_);
    if (difference == nullptr) return true;
    if (by_default) note(fmt::format("{} is not checked: not the same {}", limit.key, difference->what));
    return !by_default;
  }

  /// Returns true if the records behind a figure are complete, or if the user accepts the loss. With lost
  /// records a limit could pass by mistake.
  bool records_suffice(const Limit& limit, bool by_default) {
    for (const StepSummary* figures : {&base_, &now_}) {
      const bool counts = figures == &now_ || limit.needs_baseline();
      if (!counts || !is_incomplete(*figures, limit.key)) continue;
      if (!by_default && !options_.allow_lost_records) throw lost_records(limit, *figures);
      note(fmt::format("{}{}: the tracer of {} lost some GPU records ({})", limit.key,
                       options_.allow_lost_records ? " may be wrong" : " is not checked", figures->source,
                       losses_text(*figures->tracing)));
      if (!options_.allow_lost_records) return false;
    }
    return true;
  }

  void note_missing(const Check& check) {
    if (!check.value && !check.baseline) return;
    note(fmt::format("{} is not checked: it is not in the {}", check.key,
                     check.value ? "baseline" : "trace or report"));
  }

  void note(std::string text) { verdict_.notes.push_back(std::move(text)); }

  static Error other_baseline(const RunDifference& difference) {
    return input_error(
        fmt::format("the baseline is of another {}: {}; now {}",
                    difference.what == "device" ? "device" : "version of LibTorch", difference.base,
                    difference.now),
        "Use the baseline of this one, or write a new one with --update. With --allow-different they "
        "are compared anyway.");
  }

  Error other_source(const Limit& limit, const RunDifference& difference) const {
    return input_error(
        fmt::format("limit '{}{}' would compare times of different sources: baseline {}; now {}", limit.key,
                    limit.text, difference.base, difference.now),
        "Compare figures of the same source, or check only bytes, which are exact in both.");
  }

  static Error lost_records(const Limit& limit, const StepSummary& figures) {
    return input_error(
        fmt::format("limit '{}{}' applies to a figure that may be wrong: the tracer of {} lost some "
                    "GPU records ({})",
                    limit.key, limit.text, figures.source, losses_text(*figures.tracing)),
        "Record it again, or check only bytes, which are exact anyway. With --force the limit is "
        "checked anyway.");
  }

  Error nothing_to_check() const {
    return input_error(fmt::format("{} and {} have no common figure with a limit", base_.source, now_.source),
                       "Set limits with --limit, or write a new baseline with --update.");
  }

  const StepSummary& base_;
  const StepSummary& now_;
  const GateOptions& options_;
  std::vector<RunDifference> differences_;
  GateResult verdict_;
  bool checked_a_figure_ = false;
};

}  // namespace

double Limit::bound(double baseline, double deviation) const {
  constexpr double kWhole = 100.0;
  switch (form) {
    case Form::kPercent:
      return value == 0 ? baseline : baseline * (kWhole + value) / kWhole;
    case Form::kAmount:
      return baseline + value;
    case Form::kDeviations:
      return baseline + value * deviation;
    case Form::kAbsolute:
      return value;
  }
  return value;
}

Limit parse_limit(const std::string& given) {
  const std::string text = without_blanks(given);
  const std::size_t sign = text.find_first_of("<>=");
  const std::string comparison = sign == std::string::npos ? "" : text.substr(sign, 2);
  if (comparison != "<=" && comparison != ">=") {
    throw input_error(fmt::format("'{}' is not a limit", given), kLimitHint);
  }
  Limit limit{.key = text.substr(0, sign), .text = text.substr(sign)};
  const auto figure = find_figure(limit.key);
  if (!figure) throw unknown_key(limit.key);
  limit.side = comparison == "<=" ? Limit::Side::kAtMost : Limit::Side::kAtLeast;
  parse_bound(text.substr(sign + 2), figure->unit, limit);
  return limit;
}

std::vector<Limit> default_limits(std::size_t runs) {
  std::vector<Limit> limits;
  const char* const time = runs < kLeastRunsForDeviation ? "step_time_ns<=+25%" : "step_time_ns<=+3sd";
  for (const char* text :
       {"device_peak_bytes<=+0%", "device_allocated_peak_bytes<=+0%", "device_reserved_peak_bytes<=+0%",
        "host_peak_bytes<=+0%", "disk_peak_bytes<=+0%", "d2h_bytes<=+0%", "h2d_bytes<=+0%",
        "disk_write_bytes<=+0%", "disk_read_bytes<=+0%", time}) {
    limits.push_back(parse_limit(text));
  }
  return limits;
}

GateResult check_gate(const StepSummary& base, const StepSummary& now, const GateOptions& options) {
  return Gate(base, now, options).judge();
}

}  // namespace offprof
