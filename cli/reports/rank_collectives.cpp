#include "cli/reports/rank_collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/tables/figure_text.h"
#include "cli/tables/headline.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

// Bytes of a communicator: see estimate_nccl_memory.
constexpr Bytes kLeastOfCommunicator = 544'000'000, kMostOfCommunicator = 2'000'000'000;

bool receives_messages(const RanksWithCollectives& ranks) {
  return std::ranges::any_of(ranks, [](const auto& rank) {
    return std::ranges::find(rank.second->sums, "receive", &CollectiveSum::name) != rank.second->sums.end();
  });
}

}  // namespace

RankCollectives parse_collectives(const JsonValue& report) {
  RankCollectives collectives;
  if (const auto communicators = report.find("communicators"))
    collectives.communicators = communicators->as_integer();
  if (const auto exposed = report.find("exposed_collectives_ns"))
    collectives.exposed_ns = exposed->as_integer();
  if (const auto mismatch = report.find("mismatch")) collectives.mismatch = mismatch->as_string();
  const auto list = report.find("collectives");
  for (std::size_t i = 0; list && i < list->size(); ++i) {
    const JsonValue entry = list->element(i);
    collectives.sums.push_back(
        {.name = entry.at("name").as_string(),
         .calls = entry.at("calls").as_integer(),
         .bytes = entry.at("bytes").as_integer(),
         .time_ns = entry.at("time_ns").as_integer(),
         .range = {entry.at("least_time_ns").as_integer(), entry.at("most_time_ns").as_integer()}});
  }
  return collectives;
}

std::string unmatched_warning(const std::string& message) {
  return message + ": real devices would wait for ever, or bring wrong values";
}

std::string mismatch_warning(const RankCollectives& collectives) {
  if (collectives.mismatch.empty()) return {};
  return collectives.mismatch + ": if all ranks ran, they would wait for each other";
}

NcclMemory estimate_nccl_memory(std::int64_t communicators) {
  return {communicators * kLeastOfCommunicator, communicators * kMostOfCommunicator};
}

std::string collective_table(const RanksWithCollectives& ranks, const Page& page) {
  TextTable table({{"rank"}, {"collective", Align::kLeft}, {"calls"}, {"bytes"}, {"time"}});
  for (const auto& [rank, collectives] : ranks)
    for (const CollectiveSum& sum : collectives->sums)
      table.add_row(
          {std::to_string(rank), sum.name, std::to_string(sum.calls), format_bytes(sum.bytes),
           fmt::format("{} ({})", format_duration(sum.time_ns), range_beside(sum.time_ns, sum.range))});
  return table.empty() ? std::string{} : "\n" + table.render(page);
}

std::string collective_notes(const RanksWithCollectives& ranks) {
  std::int64_t communicators = 0;
  for (const auto& [rank, collectives] : ranks)
    communicators = std::max(communicators, collectives->communicators);
  std::string notes = fmt::format(
      "Bytes of collectives are counted as nccl-tests does. Exposed: time for which the compute stream runs "
      "collectives or waits for them. Times are {}.",
      kTimesAreModelled);
  if (receives_messages(ranks))
    notes +=
        " A message is received as soon as it is asked for, so times leave out the bubbles of pipelines, in "
        "which a stage waits for others.";
  if (communicators == 0) return notes;
  const NcclMemory nccl = estimate_nccl_memory(communicators);
  return notes + fmt::format(
                     " NCCL takes memory of its own beside these figures: {} to {} on a rank, estimated from "
                     "its number of communicators by what users reported (NCCL issues 864 and 964).",
                     format_bytes(nccl.least), format_bytes(nccl.most));
}

nlohmann::ordered_json to_json(const RankCollectives& collectives) {
  auto list = nlohmann::ordered_json::array();
  for (const CollectiveSum& sum : collectives.sums)
    list.push_back({{"name", sum.name},
                    {"calls", sum.calls},
                    {"bytes", sum.bytes},
                    {"modelled_time_ns", sum.time_ns},
                    {"modelled_time_range_ns", to_json(sum.range)}});
  const NcclMemory nccl = estimate_nccl_memory(collectives.communicators);
  return {{"communicators", collectives.communicators},
          {"exposed_collectives_ns", collectives.exposed_ns},
          {"estimated_nccl_bytes", {nccl.least, nccl.most}},
          {"mismatch", collectives.mismatch},
          {"collectives", std::move(list)}};
}

}  // namespace offprof
