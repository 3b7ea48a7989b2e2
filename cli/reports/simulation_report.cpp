#include "cli/reports/simulation_report.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "simulator/replay/replay.h"

namespace offprof {
namespace {

/// Returns the number and the total time of stalls for each reason.
std::map<StallReason, std::pair<std::size_t, Nanoseconds>> stalls_by_reason(
    const std::vector<Stall>& stalls) {
  std::map<StallReason, std::pair<std::size_t, Nanoseconds>> sums;
  for (const Stall& stall : stalls) {
    ++sums[stall.reason].first;
    sums[stall.reason].second += stall.duration_ns;
  }
  return sums;
}

}  // namespace

const std::vector<std::pair<const char*, Bytes DeviceContent::*>>& content_parts() {
  static const std::vector<std::pair<const char*, Bytes DeviceContent::*>> kParts = {
      {"parameters, optimizer state, inputs", &DeviceContent::resident},
      {"saved tensors kept on the device", &DeviceContent::kept},
      {"saved tensors in the stash", &DeviceContent::stashed},
      {"encoded saved tensors", &DeviceContent::encoded},
      {"reloaded saved tensors", &DeviceContent::reloaded},
      {"parameters, gathered or loaded", &DeviceContent::gathered},
      {"gradients, temporaries", &DeviceContent::working}};
  return kParts;
}

Explanation explain(const TraceSteps& steps, const Policy& policy, const Link& link) {
  const Step& step = steps.step(policy);
  const Prediction prediction = replay(step, policy, link);
  return {place_of_event(steps.program(policy), step, prediction.peak_event),
          content_at_peak(step, policy, link), stalls(step, policy, link)};
}

nlohmann::ordered_json to_json(const Explanation& explanation) {
  const DeviceContent& content = explanation.peak_content;
  nlohmann::ordered_json json;
  json["peak"] = {{"phase", explanation.peak_place.phase},
                  {"op", explanation.peak_place.op},
                  {"total_bytes", content.total},
                  {"resident_bytes", content.resident},
                  {"kept_bytes", content.kept},
                  {"stashed_bytes", content.stashed},
                  {"encoded_bytes", content.encoded},
                  {"reloaded_bytes", content.reloaded},
                  {"gathered_bytes", content.gathered},
                  {"working_bytes", content.working}};
  json["stalls"] = nlohmann::ordered_json::array();
  for (const auto& [reason, sum] : stalls_by_reason(explanation.stalls))
    json["stalls"].push_back(
        {{"reason", to_string(reason)}, {"count", sum.first}, {"duration_ns", sum.second}});
  return json;
}

std::string to_text(const Explanation& explanation, const Page& page, Nanoseconds times_unsure_by) {
  const ProgramPlace& place = explanation.peak_place;
  const DeviceContent& content = explanation.peak_content;
  std::string text =
      fmt::format("Device memory peaks in {}{}:\n", place.phase.empty() ? "the step" : place.phase,
                  place.op.empty() ? "" : ", in " + place.op);
  TextTable table({{"at the peak", Align::kLeft}, {"bytes", Align::kRight}, {"share", Align::kRight}});
  for (const auto& [what, part] : content_parts())
    if (content.*part != 0)
      table.add_row({what, format_bytes(content.*part), share_text(content.*part, content.total)});
  text += table.render(page);
  if (explanation.stalls.empty()) return text + "No stalls.\n";
  for (const auto& [reason, sum] : stalls_by_reason(explanation.stalls))
    text += wrap(fmt::format("Compute idle {} ({} stalls): {}.", duration_text(sum.second, times_unsure_by),
                             sum.first, describe(reason)),
                 page.width, 0) +
            "\n";
  return text;
}

}  // namespace offprof
