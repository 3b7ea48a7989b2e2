#include "cli/reports/advice/advice_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/advice/floor_report.h"
#include "cli/reports/advice/way_speed.h"
#include "cli/reports/advice/way_words.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/headline.h"
#include "cli/terminal/text_table.h"
#include "simulator/steps/modelled_time.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

std::string slowdown_text(const Way& way, const Way& nothing) {
  return fmt::format("{:+.1f}%", 100 * (seconds_of(way) / seconds_of(nothing) - 1));
}

/// Returns ` (1.20 to 1.51; +5.0%)`, the range of the way's modelled time and `change`, of which either may
/// be missing.
std::string beside_time(const Way& way, const std::string& change) {
  std::string text = way.time ? range_beside(way.time->step_ns, range_of(*way.time)) : "";
  if (!text.empty() && !change.empty()) text += "; ";
  text += change;
  return text.empty() ? "" : " (" + text + ")";
}

/// Returns true if the model cannot tell which of the two ways is faster.
bool is_alike(const Way& way, const Way& recommended) {
  return &way != &recommended && way.time && recommended.time && are_alike(*recommended.time, *way.time);
}

std::string fit_text(const Advice& advice) {
  const Bytes taken = device_bytes_taken(advice.nothing.metrics());
  if (!advice.goal.most_memory)
    return fmt::format("A step with nothing done takes {} of device memory.", format_bytes(taken));
  const Bytes most = *advice.goal.most_memory;
  return taken <= most ? fmt::format("Fits: a step takes {} of {}, with {} left.", format_bytes(taken),
                                     format_bytes(most), format_bytes(most - taken))
                       : fmt::format("Does not fit: a step takes {}, {} more than {}.", format_bytes(taken),
                                     format_bytes(taken - most), format_bytes(most));
}

std::string cost_text(const AdviceReport& report) {
  const Advice& advice = report.advice;
  const auto speed = [&](const Way& way, const std::string& change = "") {
    return speed_text(report.plain, report.peak_flops, way, beside_time(way, change));
  };
  if (advice.does_nothing) return fmt::format("A step takes {}.", speed(advice.nothing));
  const std::string change = slowdown_text(advice.recommended(), advice.nothing);
  return fmt::format("Cost: {}, against {} with nothing done.", speed(advice.recommended(), change),
                     speed(advice.nothing));
}

std::string verdict_text(const AdviceReport& report, const Page& page) {
  const Advice& advice = report.advice;
  const Way& way = advice.recommended();
  const bool names_allocator = way.name.find("expandable segments") != std::string::npos;
  std::string text = wrap(fit_text(advice), page.width, 0) + "\n";
  text +=
      wrap(fmt::format("{}: {}{}. It takes {}.",
                       way.is_within ? "Recommended" : "Nothing is within the limits; nearest", way.name,
                       way.configuration.expands_segments && !names_allocator ? " (expandable segments)" : "",
                       format_bytes(device_bytes_taken(way.metrics()))),
           page.width, 0) +
      "\n";
  return text + wrap(cost_text(report), page.width, 0) + "\n";
}

void add_row(TextTable& table, const std::string& mark, const Way& way, const Way& nothing) {
  table.add_row({mark + (way.is_within ? "" : "!"), way.name, format_bytes(device_bytes_taken(way.metrics())),
                 time_text(way), slowdown_text(way, nothing)});
}

std::string ways_text(const Advice& advice, const Page& page) {
  TextTable table({{"", Align::kLeft}, {"way", Align::kLeft}, {"memory"}, {"step"}, {""}});
  const Way& best = advice.recommended();
  const auto mark_of = [&](const Way& way) { return &way == &best ? ">" : is_alike(way, best) ? "~" : ""; };
  add_row(table, mark_of(advice.nothing), advice.nothing, advice.nothing);
  for (const Way& way : advice.ways) add_row(table, mark_of(way), way, advice.nothing);
  const auto is_alike_to_best = [&](const Way& way) { return is_alike(way, best); };
  const bool any_alike =
      is_alike_to_best(advice.nothing) || std::ranges::any_of(advice.ways, is_alike_to_best);
  const bool all_within = advice.nothing.is_within && std::ranges::all_of(advice.ways, &Way::is_within);
  return table.render(page) + (all_within ? "" : "!: not within the limits\n") +
         (any_alike ? wrap(std::string(kAlikeLegend) + "the recommended way", page.width, 0) + "\n" : "");
}

/// Lists the configurations that could not be recorded.
std::string unrecorded_text(const Advice& advice, const Page& page) {
  std::string text;
  for (const auto& [configuration, reason] : advice.unrecorded)
    text += wrap(fmt::format("not recorded: {}: {}", name_of(configuration), reason), page.width, 2) + "\n";
  return text;
}

}  // namespace

std::string confirmation_text(const Way& way, const Page& page) {
  if (!way.measured) return "";
  const bool is_equal = way.measured->device_peak_bytes == way.predicted.device_peak_bytes &&
                        device_bytes_taken(*way.measured) == device_bytes_taken(way.predicted) &&
                        way.measured->step_time_ns == way.predicted.step_time_ns;
  std::string text = "A run of this way measured exactly the predicted memory and time.";
  if (!is_equal)
    text = fmt::format("A run of this way measured these figures; predicted were {} and {}.",
                       format_bytes(device_bytes_taken(way.predicted)),
                       format_duration(*way.predicted.step_time_ns));
  if (device_bytes_taken(*way.measured) < device_bytes_taken(way.predicted))
    text += " The allocator may reserve more in a longer run.";
  return wrap(text, page.width, 0) + "\n";
}

std::string count_text(std::size_t count, const std::string& noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

nlohmann::ordered_json way_to_json(const Way& way) {
  nlohmann::ordered_json json = {{"name", way.name},
                                 {"flags", flags_of(way.configuration)},
                                 {"expandable_segments", way.configuration.expands_segments},
                                 {"policy", to_json(way.policy)},
                                 {"predicted", metrics_to_json(way.predicted)},
                                 {"is_within", way.is_within}};
  if (way.time) json["step_time_range_ns"] = to_json(range_of(*way.time));
  if (way.measured) json["measured"] = metrics_to_json(*way.measured);
  return json;
}

nlohmann::ordered_json unrecorded_to_json(const std::vector<UnrecordedConfiguration>& unrecorded) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [configuration, reason] : unrecorded)
    json.push_back({{"flags", flags_of(configuration)},
                    {"expandable_segments", configuration.expands_segments},
                    {"reason", reason}});
  return json;
}

nlohmann::ordered_json to_json(const AdviceReport& report) {
  const Advice& advice = report.advice;
  const auto with_speed = [&](const Way& way) {
    nlohmann::ordered_json one = way_to_json(way);
    one.update(rate_to_json(step_size(report.plain), way.metrics()));
    if (const auto mfu = mfu_of(report.plain, report.peak_flops, way)) one["mfu"] = *mfu;
    return one;
  };
  nlohmann::ordered_json json = {{"nothing", with_speed(advice.nothing)},
                                 {"recommended", with_speed(advice.recommended())}};
  auto& ways = json["ways"] = nlohmann::ordered_json::array();
  const Way& best = advice.recommended();
  for (const Way& way : advice.ways) {
    ways.push_back(way_to_json(way));
    if (way.time && best.time)
      ways.back()["more_than_recommended_ns"] = to_json(difference_range(*best.time, *way.time));
  }
  json["floor"] = to_json(make_floor_report(advice, report.plain));
  add_search(json, report);
  return json;
}

std::string to_text(const AdviceReport& report, const Page& page) {
  const Advice& advice = report.advice;
  std::string text =
      verdict_text(report, page) + "\n" + ways_text(advice, page) +
      times_line(report.plain.environment.times_are_modelled, page, advice.recommended().time.has_value()) +
      to_text(make_floor_report(advice, report.plain), page) + unrecorded_text(advice, page) +
      confirmation_text(advice.recommended(), page) +
      fmt::format("{}, {} simulated policies\n",
                  count_text(advice.recordings, report.is_of_traces ? "trace" : "recording"),
                  advice.replayed);
  for (const std::string& note : report.notes) text += wrap("note: " + note, page.width, 0) + "\n";
  return text + instructions_text(report.instructions, advice.recommended());
}

}  // namespace offprof
