#include "cli/reports/advice/size_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/advice/advice_report.h"
#include "cli/reports/advice/way_speed.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

bool has_answer(const SizeAdvice& advice) {
  return !advice.ways.empty() && advice.ways.front().size > 0;
}

/// Returns the data that a step of that size processes.
StepSize step_size_at(const SizeReport& report, std::int64_t size) {
  StepSize step = step_size(report.plain);
  const auto scaled = [&](std::optional<std::int64_t>& count) {
    if (count) *count = *count * size / report.advice.present;
  };
  scaled(step.tokens);
  if (report.is_batch) {
    scaled(step.samples);
    if (!step.tokens && !step.samples) step.samples = size;
  }
  return step;
}

std::string rate_of(const SizeReport& report, const SizedWay& way) {
  return rate_text(step_size_at(report, way.way_size), seconds_of(way.way));
}

/// Returns the largest size with nothing done; 0: none.
std::int64_t size_with_nothing_done(const SizeAdvice& advice) {
  for (const SizedWay& way : advice.ways) {
    Configuration configuration = way.way.configuration;
    configuration.size.reset();
    if (configuration == Configuration{} && way.way.policy == preset_policy("keep")) return way.size;
  }
  return 0;
}

std::string way_name(const Way& way) {
  const bool names_allocator = way.name.find("expandable segments") != std::string::npos;
  return way.name + (way.configuration.expands_segments && !names_allocator ? " (expandable segments)" : "");
}

/// Returns a sentence that says which limit is too narrow.
std::string no_answer_text(const SizeReport& report) {
  const SizeAdvice& advice = report.advice;
  const std::string limit = format_bytes(*advice.goal.most_memory);
  if (advice.ways.empty()) return fmt::format("No {} is within {}.", report.noun, limit);
  const auto fitting = std::ranges::find_if(advice.ways, [&](const SizedWay& way) {
    return device_bytes_taken(way.way.metrics()) <= *advice.goal.most_memory;
  });
  if (fitting == advice.ways.end())
    return fmt::format("No {} is within {}: a step of 1 takes {} at least.", report.noun, limit,
                       format_bytes(device_bytes_taken(advice.ways.front().way.metrics())));
  const double slowdown = seconds_of(fitting->way) / static_cast<double>(fitting->way_size) /
                              (seconds_of(advice.nothing) / static_cast<double>(advice.present)) -
                          1;
  return fmt::format(
      "No {} that fits {} is fast enough: {} at {} takes {:.1f} % more time for the same data than the "
      "program with nothing done at {}.",
      report.noun, limit, way_name(fitting->way), fitting->way_size, slowdown * 100, advice.present);
}

std::string verdict_text(const SizeReport& report, const Page& page) {
  const SizeAdvice& advice = report.advice;
  std::string text;
  const auto add = [&](const std::string& sentence) { text += wrap(sentence, page.width, 0) + "\n"; };
  const std::string limit = format_bytes(*advice.goal.most_memory);
  if (!has_answer(advice)) {
    add(no_answer_text(report));
    return text;
  }
  const SizedWay& best = advice.ways.front();
  const std::int64_t plain = size_with_nothing_done(advice);
  add(fmt::format("The largest {} within {} is {}; {} with nothing done (the program has {}).", report.noun,
                  limit, best.size, plain == 0 ? "none fits" : std::to_string(plain), advice.present));
  add(fmt::format("Recommended: {}. It takes {}.", way_name(best.way),
                  format_bytes(device_bytes_taken(best.way.metrics()))));
  const std::string rate = rate_of(report, best);
  std::string cost = fmt::format("Cost: {} a step", time_text(best.way));
  if (!rate.empty())
    cost += fmt::format(", {}, against {} with nothing done at {}", rate,
                        rate_text(step_size_at(report, advice.present), seconds_of(advice.nothing)),
                        advice.present);
  add(cost + ".");
  return text;
}

std::string ways_text(const SizeReport& report, const Page& page) {
  TextTable table({{"", Align::kLeft},
                   {"way", Align::kLeft},
                   {report.is_batch ? "batch" : "length"},
                   {"memory"},
                   {"step"},
                   {"rate"}});
  bool is_first = has_answer(report.advice);
  for (const SizedWay& way : report.advice.ways) {
    table.add_row({is_first        ? ">"
                   : way.size == 0 ? "!"
                                   : "",
                   way.way.name, std::to_string(way.size),
                   format_bytes(device_bytes_taken(way.way.metrics())), time_text(way.way),
                   rate_of(report, way)});
    is_first = false;
  }
  return table.render(page);
}

std::string remarks_text(const SizeReport& report, const Page& page) {
  const SizeAdvice& advice = report.advice;
  std::string text;
  const auto add = [&](const std::string& sentence) { text += wrap(sentence, page.width, 0) + "\n"; };
  if (std::ranges::any_of(advice.ways, [](const SizedWay& way) { return way.size == 0; }))
    add("!: no size is within the limits; figures of the largest that fits the memory, or else of a step "
        "of 1");
  add(fmt::format(
      "Each {} is exact: a step of it was recorded and is within the limits, and the next one is not.",
      report.noun));
  for (const SizedWay& way : advice.ways)
    if (way.is_limited_by_recording)
      add(fmt::format("{}: a larger step could not be recorded, so that it may fit.", way.way.name));
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const SizeReport& report) {
  const SizeAdvice& advice = report.advice;
  nlohmann::ordered_json json = {{"present", advice.present}, {"nothing", way_to_json(advice.nothing)}};
  auto& ways = json["ways"] = nlohmann::ordered_json::array();
  for (const SizedWay& way : advice.ways) {
    ways.push_back(way_to_json(way.way));
    ways.back()["size"] = way.size;
    if (way.is_limited_by_recording) ways.back()["is_limited_by_recording"] = true;
  }
  add_search(json, report);
  return json;
}

std::string to_text(const SizeReport& report, const Page& page) {
  std::string text = verdict_text(report, page) + "\n" + ways_text(report, page) +
                     times_line(report.plain.environment.times_are_modelled, page) +
                     remarks_text(report, page) +
                     fmt::format("{}, {} simulated policies\n",
                                 count_text(report.advice.recordings, "recording"), report.advice.replayed);
  if (has_answer(report.advice)) text += confirmation_text(report.advice.ways.front().way, page);
  for (const std::string& note : report.notes) text += wrap("note: " + note, page.width, 0) + "\n";
  if (!has_answer(report.advice)) return text;
  return text + instructions_text(report.instructions, report.advice.ways.front().way);
}

}  // namespace offprof
