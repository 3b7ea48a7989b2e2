#include "cli/validate_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/figure_text.h"
#include "cli/text_table.h"
#include "traces/metrics_io.h"
#include "traces/policy_io.h"
#include "traces/units.h"

namespace offprof {
namespace {

constexpr std::size_t kSettingsShown = 10;

Verdict judge(double error, double bound, double noise) {
  if (error <= bound) return Verdict::kWithin;
  return error - noise <= bound ? Verdict::kHiddenByNoise : Verdict::kBeyond;
}

const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::kWithin:
      return "within";
    case Verdict::kHiddenByNoise:
      return "hidden by noise";
    case Verdict::kBeyond:
      break;
  }
  return "beyond";
}

Tone tone_of(Verdict verdict) {
  return verdict == Verdict::kWithin   ? Tone::kGood
         : verdict == Verdict::kBeyond ? Tone::kBad
                                       : Tone::kWarning;
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

nlohmann::ordered_json to_json(const Accuracy& accuracy) {
  nlohmann::ordered_json json = {{"mean_error", accuracy.mean_error},
                                 {"p95_error", accuracy.p95_error},
                                 {"max_error", accuracy.max_error},
                                 {"bias", accuracy.bias}};
  json["mean_noise"] = optional_json(accuracy.mean_noise);
  json["p95_noise"] = optional_json(accuracy.p95_noise);
  json["kendall_tau"] = optional_json(accuracy.kendall_tau);
  json["ranked_pairs"] = accuracy.ranked_pairs;
  return json;
}

nlohmann::ordered_json to_json(const ValidatedSetting& setting) {
  nlohmann::ordered_json json = {{"policy", to_json(setting.policy)},
                                 {"predicted", metrics_to_json(setting.predicted)},
                                 {"measured", metrics_to_json(setting.measured)},
                                 {"step_times_ns", setting.times.measured_ns},
                                 {"error", relative_error(setting.times)},
                                 {"adjusted_error", relative_error(setting.adjusted)}};
  json["noise"] = optional_json(noise_of(setting.times));
  json["gradients"] = setting.gradients;
  json["inexact"] = setting.inexact;
  return json;
}

/// Those with the largest errors, largest first.
std::vector<const ValidatedSetting*> worst_settings(const ValidationReport& report) {
  std::vector<const ValidatedSetting*> worst;
  for (const ValidatedSetting& setting : report.settings) worst.push_back(&setting);
  std::ranges::stable_sort(worst, std::ranges::greater(), [](const ValidatedSetting* setting) {
    return std::abs(relative_error(setting->adjusted));
  });
  worst.resize(std::min(worst.size(), kSettingsShown));
  return worst;
}

std::string settings_text(const ValidationReport& report, const Page& page) {
  TextTable table({{"furthest off", Align::kLeft},
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

std::string accuracy_text(const ValidationReport& report, const Page& page) {
  const Accuracy &accuracy = report.accuracy, &adjusted = report.adjusted;
  TextTable table({{"step time", Align::kLeft},
                   {"by trace", Align::kRight},
                   {"less drift", Align::kRight},
                   {"noise", Align::kRight},
                   {"bound", Align::kRight},
                   {"", Align::kLeft}});
  const auto noise_text = [](const std::optional<double>& noise) { return noise ? percent(*noise) : "-"; };
  const auto verdict_cell = [](Verdict verdict) {
    return TextTable::Cell(to_string(verdict), tone_of(verdict));
  };
  table.add_row({"mean error", percent(accuracy.mean_error), percent(adjusted.mean_error),
                 noise_text(adjusted.mean_noise), percent(report.bounds.mean_error),
                 verdict_cell(report.mean_verdict())});
  table.add_row({"95th percentile", percent(accuracy.p95_error), percent(adjusted.p95_error),
                 noise_text(adjusted.p95_noise), percent(report.bounds.p95_error),
                 verdict_cell(report.p95_verdict())});
  table.add_row({"largest", percent(accuracy.max_error), percent(adjusted.max_error), "", "", ""});
  if (adjusted.kendall_tau)
    table.add_row({"Kendall's tau", fmt::format("{:.3f}", *accuracy.kendall_tau),
                   fmt::format("{:.3f}", *adjusted.kendall_tau), "",
                   fmt::format("{:.3f}", report.bounds.kendall_tau), verdict_cell(report.ranking_verdict())});
  return table.render(page);
}

std::string ranking_text(const ValidationReport& report) {
  const std::size_t count = report.settings.size();
  if (!report.adjusted.kendall_tau)
    return "No two settings differ by more than the noise, so there is nothing to rank.\n";
  return fmt::format("The ranking is of {} of {} pairs: those that differ by more than the noise.\n",
                     report.adjusted.ranked_pairs, count * (count - 1) / 2);
}

std::string memory_text(const ValidationReport& report, const Page& page) {
  std::string text;
  for (const ValidatedSetting& setting : report.settings)
    for (const std::string& key : setting.inexact)
      text += page.paint(Tone::kBad,
                         wrap(fmt::format("{}: {} differs", describe(setting.policy), key), page.width, 2)) +
              "\n";
  if (text.empty()) return "Memory, copied bytes and commands: no difference in any setting.\n";
  return "Memory, copied bytes and commands differ:\n" + text;
}

std::string gradients_text(const ValidationReport& report, const Page& page) {
  std::string text;
  for (const ValidatedSetting& setting : report.settings)
    if (setting.gradients != "bitwise" && setting.gradients != "not applicable")
      text += page.paint(Tone::kBad, describe(setting.policy) + ": gradients: " + setting.gradients) + "\n";
  return text;
}

std::string drift_text(const ValidationReport& report, const Page& page) {
  const std::string text = fmt::format(
      "Drift: with nothing offloaded a step takes {} against the trace. That much the machine, or its load, "
      "has "
      "changed; less drift, all compute is predicted so much longer.",
      signed_percent(report.drift));
  return wrap(text, page.width, 0) + "\n";
}

}  // namespace

Verdict ValidationReport::mean_verdict() const {
  return judge(adjusted.mean_error, bounds.mean_error, adjusted.mean_noise.value_or(0));
}

Verdict ValidationReport::p95_verdict() const {
  return judge(adjusted.p95_error, bounds.p95_error, adjusted.p95_noise.value_or(0));
}

/// The noise is in the choice of the pairs already.
Verdict ValidationReport::ranking_verdict() const {
  return judge(-adjusted.kendall_tau.value_or(1), -bounds.kendall_tau, 0);
}

bool ValidationReport::memory_is_exact() const {
  return std::ranges::all_of(settings,
                             [](const ValidatedSetting& setting) { return setting.inexact.empty(); });
}

bool ValidationReport::gradients_are_right() const {
  return std::ranges::all_of(settings, [](const ValidatedSetting& setting) {
    return setting.gradients == "bitwise" || setting.gradients == "not applicable";
  });
}

bool ValidationReport::ok() const {
  return memory_is_exact() && gradients_are_right() && mean_verdict() != Verdict::kBeyond &&
         p95_verdict() != Verdict::kBeyond && ranking_verdict() != Verdict::kBeyond;
}

nlohmann::ordered_json to_json(const ValidationReport& report) {
  nlohmann::ordered_json json = {{"model", report.model},
                                 {"trace", report.trace},
                                 {"device", report.device},
                                 {"rounds", report.rounds},
                                 {"by_trace", to_json(report.accuracy)},
                                 {"less_drift", to_json(report.adjusted)},
                                 {"drift", report.drift}};
  json["bounds"] = {{"mean_error", report.bounds.mean_error},
                    {"p95_error", report.bounds.p95_error},
                    {"kendall_tau", report.bounds.kendall_tau}};
  json["verdicts"] = {{"mean_error", to_string(report.mean_verdict())},
                      {"p95_error", to_string(report.p95_verdict())},
                      {"kendall_tau", to_string(report.ranking_verdict())}};
  json["memory_is_exact"] = report.memory_is_exact();
  json["ok"] = report.ok();
  if (report.times_are_modelled) json["times_are_modelled"] = true;
  json["settings"] = nlohmann::ordered_json::array();
  for (const ValidatedSetting& setting : report.settings) json["settings"].push_back(to_json(setting));
  return json;
}

std::string to_text(const ValidationReport& report, const Page& page) {
  const std::string headline =
      fmt::format("{} on {}: {} settings, each run in {} rounds and predicted from {}", report.model,
                  report.device, report.settings.size(), report.rounds, report.trace);
  std::string text = wrap(headline, page.width, 0) + "\n\n" + accuracy_text(report, page) + "\n" +
                     settings_text(report, page) + "\n" + ranking_text(report) + drift_text(report, page) +
                     times_line(report.times_are_modelled, page) + memory_text(report, page) +
                     gradients_text(report, page);
  return text +
         (report.ok() ? page.paint(Tone::kGood, "The predictions hold.")
                      : page.paint(Tone::kBad, "The predictions do NOT hold.")) +
         "\n";
}

}  // namespace offprof
