#include "cli/reports/advice_report.h"

#include <fmt/format.h>

#include <optional>

#include "cli/reports/next_command.h"
#include "cli/reports/tuned_configuration.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

std::string flags_of_way(const Way& way) {
  RunSettings settings;
  settings.checkpointed = way.configuration.checkpointed;
  settings.slices = way.configuration.slices;
  settings.parameters = way.configuration.parameters;
  return flags_of(settings);
}

double seconds(const Way& way) {
  return static_cast<double>(*way.metrics().step_time_ns) / 1e9;
}

/// Returns the tokens of a step: the elements of the first input of integers with several dimensions.
std::optional<double> tokens_of(const Trace& plain) {
  for (const std::string& input : plain.settings.inputs) {
    if (!input.starts_with("int64[") || input.find(',') == std::string::npos) continue;
    double tokens = 1;
    for (std::size_t at = input.find('['); at != std::string::npos && at < input.find(']');
         at = input.find(',', at + 1))
      tokens *= std::strtod(input.c_str() + at + 1, nullptr);
    return tokens;
  }
  return std::nullopt;
}

/// Returns `1.25 s, 13 100 tokens/s, 53% MFU`. MFU: 6 operations per parameter and token (Chowdhery et al.,
/// PaLM, 2022, without attention) as a share of the peak rate.
std::string speed_text(const AdviceReport& report, const Way& way) {
  std::string text = fmt::format("{:.3f} s", seconds(way));
  const std::optional<double> tokens = tokens_of(report.plain);
  if (!tokens) return text;
  text += fmt::format(", {:.0f} tokens/s", *tokens / seconds(way));
  if (report.peak_flops <= 0) return text;
  const double flops = 6 * static_cast<double>(report.plain.model.parameters) * *tokens;
  return text + fmt::format(", MFU {:.0f}%", 100 * flops / (seconds(way) * report.peak_flops));
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

std::string verdict_text(const AdviceReport& report, const Page& page) {
  const Advice& advice = report.advice;
  const Way& way = advice.recommended();
  const double slower = 100 * (seconds(way) / seconds(advice.nothing) - 1);
  std::string text = wrap(fit_text(advice), page.width, 0) + "\n";
  text += wrap(fmt::format(
                   "{}: {}{}. It takes {}.",
                   way.is_within ? "Recommended" : "Nothing is within the limits; nearest", way.name,
                   way.configuration.expands_segments && !advice.does_nothing ? " (expandable segments)" : "",
                   format_bytes(device_bytes_taken(way.metrics()))),
               page.width, 0) +
          "\n";
  return text +
         wrap(fmt::format("Cost: {} ({:+.1f}%), against {}.", speed_text(report, way), slower,
                          speed_text(report, advice.nothing)),
              page.width, 0) +
         "\n";
}

void add_row(TextTable& table, const std::string& mark, const Way& way, const Way& nothing) {
  const double slower = 100 * (seconds(way) / seconds(nothing) - 1);
  table.add_row({mark + (way.is_within ? "" : "!"), way.name, format_bytes(device_bytes_taken(way.metrics())),
                 fmt::format("{:.3f} s", seconds(way)), fmt::format("{:+.1f}%", slower)});
}

std::string ways_text(const Advice& advice, const Page& page) {
  TextTable table({{"", Align::kLeft}, {"way", Align::kLeft}, {"memory"}, {"step"}, {""}});
  add_row(table, advice.does_nothing ? ">" : "", advice.nothing, advice.nothing);
  for (std::size_t i = 0; i < advice.ways.size(); ++i)
    add_row(table, !advice.does_nothing && i == advice.best ? ">" : "", advice.ways[i], advice.nothing);
  return table.render(page) + "!: not within the limits\n";
}

/// Describes the memory that no policy for saved tensors changes, and what reduces it.
std::string floor_text(const AdviceReport& report, const Page& page) {
  const StepFloor& floor = report.advice.floor;
  std::string text = fmt::format(
      "Memory that activations have no part in: {} (parameters {}, gradients {}, optimizer states {}, "
      "buffers "
      "and inputs {}).",
      format_bytes(floor.total()), format_bytes(floor.parameters), format_bytes(floor.gradients),
      format_bytes(floor.optimizer), format_bytes(floor.others));
  const auto& most = report.advice.goal.most_memory;
  if (most && *most > 0 && floor.total() > *most)
    text += fmt::format(
        " Activations are not the problem: this alone exceeds {}. By arithmetic, FSDP needs at least {} "
        "ranks "
        "for it; optimizer states of 8 bits, LoRA or parameter offload reduce it.",
        format_bytes(*most), (floor.total() + *most - 1) / *most);
  return wrap(text, page.width, 0) + "\n";
}

std::string confirmation_text(const Way& way, const Page& page) {
  if (!way.measured) return "";
  const bool is_equal = way.measured->device_peak_bytes == way.predicted.device_peak_bytes &&
                        device_bytes_taken(*way.measured) == device_bytes_taken(way.predicted) &&
                        way.measured->step_time_ns == way.predicted.step_time_ns;
  return wrap(is_equal ? "A run of this way measured exactly the predicted memory and time."
                       : fmt::format("A run of this way measured these figures; predicted were {} and {}.",
                                     format_bytes(device_bytes_taken(way.predicted)),
                                     format_duration(*way.predicted.step_time_ns)),
              page.width, 0) +
         "\n";
}

std::string next_text(const AdviceReport& report) {
  return (report.expands_segments ? "Next: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True " : "Next: ") +
         command_line(report.run) + "\n";
}

nlohmann::ordered_json way_to_json(const Way& way) {
  nlohmann::ordered_json json = {{"name", way.name},
                                 {"flags", flags_of_way(way)},
                                 {"expandable_segments", way.configuration.expands_segments},
                                 {"policy", to_json(way.policy)},
                                 {"predicted", metrics_to_json(way.predicted)},
                                 {"is_within", way.is_within}};
  if (way.measured) json["measured"] = metrics_to_json(*way.measured);
  return json;
}

}  // namespace

nlohmann::ordered_json to_json(const AdviceReport& report) {
  const Advice& advice = report.advice;
  nlohmann::ordered_json json = {{"nothing", way_to_json(advice.nothing)},
                                 {"recommended", way_to_json(advice.recommended())}};
  auto& ways = json["ways"] = nlohmann::ordered_json::array();
  for (const Way& way : advice.ways) ways.push_back(way_to_json(way));
  json["floor"] = {{"parameter_bytes", advice.floor.parameters},
                   {"gradient_bytes", advice.floor.gradients},
                   {"optimizer_bytes", advice.floor.optimizer},
                   {"other_bytes", advice.floor.others}};
  json["recordings"] = advice.recordings;
  json["policies_tried"] = advice.replayed;
  json["run"] = report.run;
  json["notes"] = report.notes;
  return json;
}

std::string to_text(const AdviceReport& report, const Page& page) {
  std::string text =
      verdict_text(report, page) + "\n" + ways_text(report.advice, page) +
      times_line(report.plain.environment.times_are_modelled, page) + floor_text(report, page) +
      confirmation_text(report.advice.recommended(), page) +
      fmt::format("{} recordings, {} simulated policies\n", report.advice.recordings, report.advice.replayed);
  for (const std::string& note : report.notes) text += wrap("note: " + note, page.width, 0) + "\n";
  return text + next_text(report);
}

}  // namespace offprof
