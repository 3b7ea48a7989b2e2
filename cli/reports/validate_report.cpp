#include "cli/reports/validate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/reports/run_report.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/base/units.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/model/gradient_error.h"

namespace offprof {
namespace {

constexpr std::size_t kSettingsShown = 10;

/// `at_least` is the smallest possible error without noise.
BoundResult judge(double error, double bound, double at_least) {
  if (error <= bound) return BoundResult::kWithin;
  return at_least <= bound ? BoundResult::kHiddenByNoise : BoundResult::kBeyond;
}

double low_end(const std::optional<Range>& range, double otherwise) {
  return range ? range->low : otherwise;
}

double high_end(const std::optional<Range>& range, double otherwise) {
  return range ? range->high : otherwise;
}

const char* to_string(BoundResult verdict) {
  switch (verdict) {
    case BoundResult::kWithin:
      return "within";
    case BoundResult::kHiddenByNoise:
      return "hidden by noise";
    case BoundResult::kNothingToRank:
      return "nothing to rank";
    case BoundResult::kBeyond:
      break;
  }
  return "beyond";
}

Tone tone_of(BoundResult verdict) {
  switch (verdict) {
    case BoundResult::kWithin:
      return Tone::kGood;
    case BoundResult::kHiddenByNoise:
      return Tone::kWarning;
    case BoundResult::kNothingToRank:
      return Tone::kPlain;
    case BoundResult::kBeyond:
      break;
  }
  return Tone::kBad;
}

const char* to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::kHold:
      return "hold";
    case Outcome::kCannotTell:
      return "cannot tell";
    case Outcome::kDoNotHold:
      break;
  }
  return "do not hold";
}

std::string percent(double share) {
  return fmt::format("{:.2f}%", 100 * share);
}

std::string signed_percent(double share) {
  return fmt::format("{:+.2f}%", 100 * share);
}

nlohmann::ordered_json optional_json(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json range_json(const std::optional<Range>& range) {
  return range ? nlohmann::ordered_json{range->low, range->high} : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json to_json(const Accuracy& accuracy) {
  nlohmann::ordered_json json = {{"mean_error", accuracy.mean_error},
                                 {"p95_error", accuracy.p95_error},
                                 {"max_error", accuracy.max_error},
                                 {"bias", accuracy.bias}};
  json["mean_noise"] = optional_json(accuracy.mean_noise);
  json["p95_noise"] = optional_json(accuracy.p95_noise);
  json["kendall_tau"] = optional_json(accuracy.kendall_tau);
  json["ranked_pairs"] = accuracy.ranked_pairs;
  json["mean_error_less_noise"] = range_json(accuracy.mean_range);
  json["p95_error_less_noise"] = range_json(accuracy.p95_range);
  json["kendall_tau_less_noise"] = range_json(accuracy.tau_range);
  return json;
}

nlohmann::ordered_json to_json(const ValidatedSetting& setting, bool compares_times) {
  nlohmann::ordered_json json = {{"policy", to_json(setting.policy)},
                                 {"predicted", metrics_to_json(setting.predicted)},
                                 {"measured", metrics_to_json(setting.measured)}};
  if (compares_times)
    json.update({{"step_times_ns", setting.times.measured_ns},
                 {"error", relative_error(setting.times)},
                 {"adjusted_error", relative_error(setting.adjusted)},
                 {"sets_drift", setting.sets_drift},
                 {"noise", optional_json(noise_of(setting.times))}});
  json["gradients"] = setting.gradients;
  json["inexact"] = setting.inexact;
  return json;
}

/// Returns the judged settings with the largest errors, largest first.
std::vector<const ValidatedSetting*> worst_settings(const ValidationReport& report) {
  std::vector<const ValidatedSetting*> worst;
  for (const ValidatedSetting& setting : report.settings)
    if (!setting.sets_drift) worst.push_back(&setting);
  std::ranges::stable_sort(worst, std::ranges::greater(), [](const ValidatedSetting* setting) {
    return std::abs(relative_error(setting->adjusted));
  });
  worst.resize(std::min(worst.size(), kSettingsShown));
  return worst;
}

std::string settings_text(const ValidationReport& report, const Page& page) {
  TextTable table({{"largest errors", Align::kLeft},
                   {"measured", Align::kRight},
                   {"predicted", Align::kRight},
                   {"error", Align::kRight},
                   {"noise", Align::kRight}});
  for (const ValidatedSetting* setting : worst_settings(report)) {
    const auto noise = noise_of(setting->times);
    table.add_row({describe(setting->policy), format_duration(median_of(setting->times.measured_ns)),
                   format_duration(setting->adjusted.predicted_ns),
                   signed_percent(relative_error(setting->adjusted)), noise ? percent(*noise) : "-"});
  }
  return table.render(page);
}

std::string range_text(const std::optional<Range>& range) {
  return range ? fmt::format("{:.2f}-{:.2f}%", 100 * range->low, 100 * range->high) : "-";
}

std::string accuracy_text(const ValidationReport& report, const Page& page) {
  const Accuracy &accuracy = report.accuracy, &adjusted = report.adjusted;
  TextTable table({{"step time", Align::kLeft},
                   {"raw", Align::kRight},
                   {"drift-corrected", Align::kRight},
                   {"noise-corrected", Align::kRight},
                   {"bound", Align::kRight},
                   {"", Align::kLeft}});
  const auto less_drift = [&](const std::string& figure) { return report.drift ? figure : "-"; };
  const auto verdict_cell = [](BoundResult verdict) {
    return TextTable::Cell(to_string(verdict), tone_of(verdict));
  };
  const auto tau_text = [](const std::optional<double>& tau) {
    return tau ? fmt::format("{:.3f}", *tau) : "-";
  };
  table.add_row({"mean error", percent(accuracy.mean_error), less_drift(percent(adjusted.mean_error)),
                 range_text(adjusted.mean_range), percent(report.bounds.mean_error),
                 verdict_cell(report.mean_verdict())});
  table.add_row({"p95 error", percent(accuracy.p95_error), less_drift(percent(adjusted.p95_error)),
                 range_text(adjusted.p95_range), percent(report.bounds.p95_error),
                 verdict_cell(report.p95_verdict())});
  table.add_row(
      {"max error", percent(accuracy.max_error), less_drift(percent(adjusted.max_error)), "", "", ""});
  table.add_row({"Kendall's tau", tau_text(accuracy.kendall_tau), less_drift(tau_text(adjusted.kendall_tau)),
                 adjusted.tau_range
                     ? fmt::format("{:.3f}-{:.3f}", adjusted.tau_range->low, adjusted.tau_range->high)
                     : "-",
                 fmt::format("{:.3f}", report.bounds.kendall_tau), verdict_cell(report.ranking_verdict())});
  return table.render(page);
}

/// Returns an empty string for an empty text.
std::string paragraph(const std::string& text, const Page& page) {
  return text.empty() ? text : wrap(text, page.width, 0) + "\n";
}

std::string noise_text(const ValidationReport& report, const Page& page) {
  const Accuracy& adjusted = report.adjusted;
  if (!adjusted.mean_noise) return "Noise: unknown after only one round.\n";
  return paragraph(
      fmt::format("Noise: the two halves of a setting's measurements differ by {} on average, by {} "
                  "at the 95th percentile.",
                  percent(*adjusted.mean_noise), percent(*adjusted.p95_noise)),
      page);
}

std::string ranking_text(const ValidationReport& report, const Page& page) {
  const auto judged =
      static_cast<std::size_t>(std::ranges::count(report.settings, false, &ValidatedSetting::sets_drift));
  if (!report.adjusted.kendall_tau)
    return paragraph("Ranking: no two settings differ by more than noise, so there is nothing to rank.",
                     page);
  return paragraph(fmt::format("Ranking: {} of {} pairs, those whose order noise cannot change.",
                               report.adjusted.ranked_pairs, judged * (judged - 1) / 2),
                   page);
}

/// Returns true if a difference of that key does not make the prediction wrong.
bool is_right(const ValidationReport& report, const ValidatedSetting& setting, const std::string& key) {
  return report.device.starts_with("cuda") &&
         may_differ_by_addresses(key, setting.measured, setting.predicted);
}

std::string memory_text(const ValidationReport& report, const Page& page) {
  std::string text;
  for (const ValidatedSetting& setting : report.settings)
    for (const std::string& key : setting.inexact)
      text += page.paint(is_right(report, setting, key) ? Tone::kWarning : Tone::kBad,
                         wrap(describe(setting.policy) + ": " +
                                  difference_text(key, setting.measured, setting.predicted),
                              page.width, 2)) +
              "\n";
  if (text.empty()) return "Memory, copied bytes and commands: no difference in any setting.\n";
  if (report.memory_is_right())
    text += paragraph(
        "Requested memory is exact. Allocated and reserved memory may differ between processes: among free "
        "blocks of one size, PyTorch's allocator takes the one with the lowest address, and the GPU's driver "
        "chooses the addresses.",
        page);
  return "Memory, copied bytes and commands differ:\n" + text;
}

std::string gradients_text(const ValidationReport& report, const Page& page) {
  std::string text;
  for (const ValidatedSetting& setting : report.settings)
    if (!gradients_pass(setting.gradients))
      text += page.paint(Tone::kBad, describe(setting.policy) + ": gradients: " + setting.gradients) + "\n";
  const auto noisy = std::ranges::count_if(report.settings, [](const ValidatedSetting& setting) {
    return setting.gradients.starts_with(kNotReproducible);
  });
  if (noisy > 0) text += fmt::format("Gradients of {} settings: {}.\n", noisy, kNotReproducible);
  return text;
}

std::string refused_text(const ValidationReport& report, const Page& page) {
  std::string text;
  for (const RefusedSetting& setting : report.refused)
    text += page.paint(Tone::kWarning,
                       wrap(describe(setting.policy) + ": not run: " + setting.why, page.width, 2)) +
            "\n";
  return text;
}

std::string drift_sentence(const ValidationReport& report) {
  if (report.times_are_modelled) return "Drift: none, since times are modelled. They are judged uncorrected.";
  if (!report.drift)
    return "Drift: unknown, since it takes one setting that offloads nothing and others. Times are judged "
           "uncorrected.";
  const std::string anew = report.recalibrated_drift ? fmt::format(" (by a new calibration: {})",
                                                                   signed_percent(*report.recalibrated_drift))
                                                     : "";
  return fmt::format(
      "Drift: with nothing offloaded a step takes {} compared with the trace{}. The drift is attributed to "
      "the "
      "machine and not judged; drift-corrected predictions scale all compute by it.",
      signed_percent(*report.drift), anew);
}

/// Returns an empty string if the cores were as far apart as in the trace in all visits.
std::string cores_sentence(const ValidationReport& report) {
  if (report.repeated_visits == 0 && report.displaced_visits == 0) return {};
  return fmt::format(
      "Cores: {} runs were repeated, since the cores that compute and copy moved meanwhile; {} runs count "
      "although the cores were not as far apart as when the trace was recorded.",
      report.repeated_visits, report.displaced_visits);
}

std::string remarks_text(const ValidationReport& report, const Page& page) {
  std::string text;
  for (const std::string& note : report.notes) text += paragraph(note, page);
  for (const std::string& warning : report.warnings)
    text += page.paint(Tone::kWarning, wrap("warning: " + warning, page.width, 0)) + "\n";
  return text;
}

/// Adds the members about step times.
void add_times(nlohmann::ordered_json& json, const ValidationReport& report) {
  json["by_trace"] = to_json(report.accuracy);
  json["less_drift"] = to_json(report.adjusted);
  json["drift"] = optional_json(report.drift);
  json["recalibrated_drift"] = optional_json(report.recalibrated_drift);
  json["bounds"] = {{"mean_error", report.bounds.mean_error},
                    {"p95_error", report.bounds.p95_error},
                    {"kendall_tau", report.bounds.kendall_tau}};
  json["verdicts"] = {{"mean_error", to_string(report.mean_verdict())},
                      {"p95_error", to_string(report.p95_verdict())},
                      {"kendall_tau", to_string(report.ranking_verdict())}};
}

std::string headline(const ValidationReport& report) {
  const std::string how = report.runs_one_by_one
                              ? "each run in a process of its own"
                              : fmt::format("each run in {}", counted(report.rounds, "round"));
  return fmt::format("{} on {}: {} settings, {} and predicted from {}", report.model, report.device,
                     report.settings.size(), how, report.trace);
}

std::string times_text(const ValidationReport& report, const Page& page) {
  if (!report.compares_times())
    return paragraph(
        fmt::format("Step times: not compared. Times of different processes on {} differ by more than the "
                    "settings do; a TorchScript module runs its settings interleaved in one process.",
                    report.device),
        page);
  const std::string noise = report.runs_one_by_one ? "" : noise_text(report, page);
  return accuracy_text(report, page) + "\n" + settings_text(report, page) + "\n" + noise +
         ranking_text(report, page) + paragraph(drift_sentence(report), page) +
         paragraph(cores_sentence(report), page) + times_line(report.times_are_modelled, page);
}

const char* holding_line(const ValidationReport& report) {
  if (!report.compares_times()) return "The predictions of memory, copied bytes and commands hold.";
  return report.adjusted.kendall_tau ? "The predictions hold."
                                     : "The predictions hold; there was nothing to rank.";
}

std::string closing_line(const ValidationReport& report, const Page& page) {
  switch (report.outcome()) {
    case Outcome::kHold:
      return page.paint(Tone::kGood, holding_line(report));
    case Outcome::kCannotTell:
      return page.paint(
          Tone::kWarning,
          wrap(report.machine_is_another()
                   ? "Cannot tell whether the predictions hold: the cores that compute and copy were not "
                     "as far apart as when the trace was recorded. Record it again."
               : !report.refused.empty()
                   ? "Cannot tell whether all predictions hold: the device had no memory for some settings "
                     "that "
                     "were predicted to fit. Other processes may have used it."
                   : "Noise hides whether the predictions hold: use more rounds or an idle machine.",
               page.width, 0));
    case Outcome::kDoNotHold:
      break;
  }
  return page.paint(Tone::kBad, "The predictions do NOT hold.");
}

}  // namespace

bool ValidationReport::machine_is_another() const {
  constexpr std::size_t kOneIn = 10;
  std::size_t visits = 0;
  for (const ValidatedSetting& setting : settings) visits += setting.times.measured_ns.size();
  return kOneIn * static_cast<std::size_t>(displaced_visits) > visits;
}

BoundResult ValidationReport::mean_verdict() const {
  return judge(adjusted.mean_error, bounds.mean_error, low_end(adjusted.mean_range, adjusted.mean_error));
}

BoundResult ValidationReport::p95_verdict() const {
  return judge(adjusted.p95_error, bounds.p95_error, low_end(adjusted.p95_range, adjusted.p95_error));
}

BoundResult ValidationReport::ranking_verdict() const {
  if (!adjusted.kendall_tau) return BoundResult::kNothingToRank;
  const double tau = *adjusted.kendall_tau;
  return judge(-tau, -bounds.kendall_tau, -high_end(adjusted.tau_range, tau));
}

bool ValidationReport::memory_is_exact() const {
  return std::ranges::all_of(settings,
                             [](const ValidatedSetting& setting) { return setting.inexact.empty(); });
}

bool ValidationReport::memory_is_right() const {
  return std::ranges::all_of(settings, [&](const ValidatedSetting& setting) {
    return std::ranges::all_of(setting.inexact,
                               [&](const std::string& key) { return is_right(*this, setting, key); });
  });
}

bool ValidationReport::gradients_are_right() const {
  return std::ranges::all_of(settings, gradients_pass, &ValidatedSetting::gradients);
}

Outcome ValidationReport::outcome() const {
  const std::array verdicts = {mean_verdict(), p95_verdict(), ranking_verdict()};
  const auto any_is = [&](BoundResult verdict) {
    return compares_times() && std::ranges::find(verdicts, verdict) != verdicts.end();
  };
  if (!memory_is_right() || !gradients_are_right()) return Outcome::kDoNotHold;
  if (any_is(BoundResult::kBeyond)) return machine_is_another() ? Outcome::kCannotTell : Outcome::kDoNotHold;
  return any_is(BoundResult::kHiddenByNoise) || !refused.empty() ? Outcome::kCannotTell : Outcome::kHold;
}

nlohmann::ordered_json to_json(const ValidationReport& report) {
  nlohmann::ordered_json json = {{"model", report.model},
                                 {"trace", report.trace},
                                 {"device", report.device},
                                 {"rounds", report.rounds},
                                 {"compares_times", report.compares_times()}};
  if (report.compares_times()) add_times(json, report);
  json["memory_is_exact"] = report.memory_is_exact();
  json["memory_is_right"] = report.memory_is_right();
  json["gradients_are_right"] = report.gradients_are_right();
  json["outcome"] = to_string(report.outcome());
  json["ok"] = report.outcome() == Outcome::kHold;
  json["left_out"] = report.left_out;
  if (!report.notes.empty()) json["notes"] = report.notes;
  if (!report.warnings.empty()) json["warnings"] = report.warnings;
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  json["repeated_visits"] = report.repeated_visits;
  json["displaced_visits"] = report.displaced_visits;
  json["settings"] = nlohmann::ordered_json::array();
  for (const ValidatedSetting& setting : report.settings)
    json["settings"].push_back(to_json(setting, report.compares_times()));
  if (!report.refused.empty()) json["refused"] = nlohmann::ordered_json::array();
  for (const RefusedSetting& setting : report.refused)
    json["refused"].push_back({{"policy", to_json(setting.policy)},
                               {"predicted", metrics_to_json(setting.predicted)},
                               {"out_of_memory", setting.why}});
  return json;
}

std::string to_text(const ValidationReport& report, const Page& page) {
  return wrap(headline(report), page.width, 0) + "\n\n" + times_text(report, page) +
         memory_text(report, page) + gradients_text(report, page) + refused_text(report, page) +
         remarks_text(report, page) + closing_line(report, page) + "\n";
}

}  // namespace offprof
