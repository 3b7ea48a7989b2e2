#include "cli/reports/advice_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/reports/next_command.h"
#include "cli/reports/step_size.h"
#include "cli/reports/way_words.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

double seconds(const Way& way) {
  return static_cast<double>(*way.metrics().step_time_ns) / 1e9;
}

/// Returns the step time with four digits from one second on, since ways differ in the last ones.
std::string time_text(const Way& way) {
  return seconds(way) < 1 ? format_duration(*way.metrics().step_time_ns)
                          : fmt::format("{:.3f} s", seconds(way));
}

std::string slowdown_text(const Way& way, const Way& nothing) {
  return fmt::format("{:+.1f}%", 100 * (seconds(way) / seconds(nothing) - 1));
}

/// Returns `13100 tokens/s`, or samples per second for inputs that are no tokens; empty for a program whose
/// inputs are not known.
std::string rate_text(const StepSize& size, double seconds) {
  if (size.tokens) return fmt::format(", {:.0f} tokens/s", static_cast<double>(*size.tokens) / seconds);
  if (!size.samples) return "";
  return fmt::format(", {:.1f} samples/s", static_cast<double>(*size.samples) / seconds);
}

/// Returns `1.250 s (+5.0%), 13100 tokens/s, MFU 53%`, with `change` after the time. MFU: 6 operations per
/// parameter and token (Chowdhery et al., PaLM, 2022, without attention) as a share of the peak rate for
/// bfloat16.
std::string speed_text(const AdviceReport& report, const Way& way, const std::string& change = "") {
  const StepSize size = step_size(report.plain.settings.inputs);
  std::string text = time_text(way) + change + rate_text(size, seconds(way));
  if (!size.tokens || report.peak_flops <= 0 || !computes_in_bfloat16(report.plain.program)) return text;
  const double flops =
      6 * static_cast<double>(report.plain.model.parameters) * static_cast<double>(*size.tokens);
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

std::string cost_text(const AdviceReport& report) {
  const Advice& advice = report.advice;
  if (advice.does_nothing) return fmt::format("A step takes {}.", speed_text(report, advice.nothing));
  const std::string change = " (" + slowdown_text(advice.recommended(), advice.nothing) + ")";
  return fmt::format("Cost: {}, against {} with nothing done.",
                     speed_text(report, advice.recommended(), change), speed_text(report, advice.nothing));
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
  add_row(table, advice.does_nothing ? ">" : "", advice.nothing, advice.nothing);
  for (std::size_t i = 0; i < advice.ways.size(); ++i)
    add_row(table, !advice.does_nothing && i == advice.best ? ">" : "", advice.ways[i], advice.nothing);
  const bool all_within = advice.nothing.is_within && std::ranges::all_of(advice.ways, &Way::is_within);
  return table.render(page) + (all_within ? "" : "!: not within the limits\n");
}

/// Describes the memory that no policy for saved tensors changes, and what reduces it.
std::string floor_text(const AdviceReport& report, const Page& page) {
  const StepFloor& floor = report.advice.floor;
  std::string text = fmt::format(
      "Memory without activations: {} (parameters {}, gradients {}, optimizer states {}, buffers and inputs "
      "{}).",
      format_bytes(floor.total()), format_bytes(floor.parameters), format_bytes(floor.gradients),
      format_bytes(floor.optimizer), format_bytes(floor.others));
  const auto& most = report.advice.goal.most_memory;
  if (most && *most > 0 && floor.total() > *most)
    text += fmt::format(
        " Activations are not the problem: this alone exceeds {}. By arithmetic, FSDP needs at least {} "
        "ranks for it; optimizer states of 8 bits, LoRA or parameter offload reduce it.",
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

/// Lists the configurations that could not be recorded.
std::string unrecorded_text(const Advice& advice, const Page& page) {
  std::string text;
  for (const auto& [configuration, reason] : advice.unrecorded)
    text += wrap(fmt::format("not recorded: {}: {}", name_of(configuration), reason), page.width, 2) + "\n";
  return text;
}

std::string next_text(const AdviceReport& report) {
  const std::string environment =
      report.expands_segments ? "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True " : "";
  const std::string run = environment + command_line(report.run) + "\n";
  if (report.policy_command.empty()) return "Next: " + run;
  return next_line(report.policy_command) + "Then: " + run;
}

nlohmann::ordered_json way_to_json(const Way& way) {
  nlohmann::ordered_json json = {{"name", way.name},
                                 {"flags", flags_of(way.configuration)},
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
  auto& unrecorded = json["unrecorded"] = nlohmann::ordered_json::array();
  for (const auto& [configuration, reason] : advice.unrecorded)
    unrecorded.push_back({{"flags", flags_of(configuration)},
                          {"expandable_segments", configuration.expands_segments},
                          {"reason", reason}});
  json["recordings"] = advice.recordings;
  json["policies_tried"] = advice.replayed;
  json["run"] = report.run;
  if (!report.policy_command.empty()) json["policy_command"] = report.policy_command;
  json["notes"] = report.notes;
  return json;
}

std::string to_text(const AdviceReport& report, const Page& page) {
  std::string text = verdict_text(report, page) + "\n" + ways_text(report.advice, page) +
                     times_line(report.plain.environment.times_are_modelled, page) +
                     floor_text(report, page) + unrecorded_text(report.advice, page) +
                     confirmation_text(report.advice.recommended(), page) +
                     fmt::format("{} {}, {} simulated policies\n", report.advice.recordings,
                                 report.is_of_traces ? "traces" : "recordings", report.advice.replayed);
  for (const std::string& note : report.notes) text += wrap("note: " + note, page.width, 0) + "\n";
  return text + next_text(report);
}

}  // namespace offprof
