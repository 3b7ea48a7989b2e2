#include "cli/tables/placement_text.h"

#include <fmt/format.h>

#include "cli/terminal/text_table.h"
#include "traces/format/metrics_io.h"

namespace offprof {
namespace {

std::string difference_text(double value, double base) {
  return base > 0 ? fmt::format("{:+.1f}%", 100.0 * (value - base) / base) : "";
}

std::string loss_text(const PlacementCost& cost) {
  return cost.is_lossless ? "no" : "yes";
}

void add_row(TextTable& table, const PlacementCost& cost, const Metrics& keep) {
  const Metrics& predicted = cost.candidate.predicted;
  const auto taken = device_bytes_taken(predicted), kept = device_bytes_taken(keep);
  table.add_row(
      {to_string(cost.placement), std::to_string(cost.tensors), format_bytes(cost.bytes), format_bytes(taken),
       difference_text(static_cast<double>(taken), static_cast<double>(kept)),
       format_duration(*predicted.step_time_ns),
       difference_text(static_cast<double>(*predicted.step_time_ns), static_cast<double>(*keep.step_time_ns)),
       loss_text(cost)});
}

}  // namespace

std::string placements_text(const TuneResult& result, const Page& page) {
  if (!result.placements) return {};
  TextTable table({{"placement", Align::kLeft},
                   {"tensors"},
                   {"bytes"},
                   {"device"},
                   {""},
                   {"step"},
                   {""},
                   {"lossy", Align::kLeft}});
  for (const PlacementCost& cost : result.placements->alone) add_row(table, cost, result.keep.predicted);
  return wrap("Each placement alone, applied to all tensors that it supports:", page.width, 0) + "\n\n" +
         table.render(page) +
         wrap(fmt::format("Placements were chosen for {} groups of tensors with {} simulations.",
                          result.placements->groups, result.placements->replayed),
              page.width, 0) +
         "\n\n";
}

nlohmann::ordered_json to_json(const PlacementSearchResult& placements) {
  auto alone = nlohmann::ordered_json::array();
  for (const PlacementCost& cost : placements.alone)
    alone.push_back({{"placement", to_string(cost.placement)},
                     {"lossless", cost.is_lossless},
                     {"tensors", cost.tensors},
                     {"bytes", cost.bytes},
                     {"predicted", metrics_to_json(cost.candidate.predicted)}});
  return {{"alone", std::move(alone)}, {"groups", placements.groups}, {"replayed", placements.replayed}};
}

}  // namespace offprof
