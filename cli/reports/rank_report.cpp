#include "cli/reports/rank_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

// Bytes of a communicator: see estimate_nccl_memory.
constexpr Bytes kLeastOfCommunicator = 544'000'000, kMostOfCommunicator = 2'000'000'000;

std::vector<const GpuProcess*> ranks_of(const ExecReport& report) {
  std::vector<const GpuProcess*> ranks;
  for (const GpuProcess& process : report.processes)
    if (process.rank && process.ended) ranks.push_back(&process);
  std::ranges::stable_sort(ranks, {}, [](const GpuProcess* process) { return *process->rank; });
  return ranks;
}

std::string memory_table(const std::vector<const GpuProcess*>& ranks, const Page& page) {
  TextTable table({{"rank"},
                   {"allocated"},
                   {"reserved"},
                   {"requested"},
                   {"communicators"},
                   {"out of memory", Align::kLeft},
                   {"exposed"},
                   {"modelled time"}});
  for (const GpuProcess* process : ranks) {
    const bool is_out = process->out_of_memory_errors > 0;
    table.add_row({std::to_string(*process->rank),
                   format_bytes(process->peaks.allocated),
                   format_bytes(process->peaks.reserved),
                   format_bytes(process->peaks.requested),
                   std::to_string(process->communicators),
                   {is_out ? "yes" : "no", is_out ? Tone::kBad : Tone::kPlain},
                   format_duration(process->exposed_collectives_ns),
                   format_duration(process->modelled_time_ns)});
  }
  return table.render(page);
}

std::string collective_table(const std::vector<const GpuProcess*>& ranks, const Page& page) {
  TextTable table({{"rank"}, {"collective", Align::kLeft}, {"calls"}, {"bytes"}, {"modelled time"}});
  for (const GpuProcess* process : ranks)
    for (const CollectiveSum& sum : process->collectives)
      table.add_row({std::to_string(*process->rank), sum.name, std::to_string(sum.calls),
                     format_bytes(sum.bytes), format_duration(sum.time_ns)});
  return table.empty() ? std::string{} : "\n" + table.render(page);
}

}  // namespace

NcclMemory estimate_nccl_memory(std::int64_t communicators) {
  return {communicators * kLeastOfCommunicator, communicators * kMostOfCommunicator};
}

std::string rank_text(const ExecReport& report, const Page& page) {
  const std::vector<const GpuProcess*> ranks = ranks_of(report);
  if (ranks.empty()) return {};
  std::int64_t communicators = 0;
  for (const GpuProcess* process : ranks) communicators = std::max(communicators, process->communicators);
  std::string notes = fmt::format(
      "allocated, reserved, requested: peaks, by torch.cuda.memory_stats of the rank. Bytes of collectives "
      "are "
      "counted as nccl-tests does. Exposed: time for which the compute stream runs collectives or waits for "
      "them. "
      "Times are {}.",
      kTimesAreModelled);
  if (communicators > 0) {
    const NcclMemory nccl = estimate_nccl_memory(communicators);
    notes += fmt::format(
        " NCCL takes memory of its own beside these figures: {} to {} on a rank, estimated from its number "
        "of "
        "communicators by what users reported (NCCL issues 864 and 964).",
        format_bytes(nccl.least), format_bytes(nccl.most));
  }
  return memory_table(ranks, page) + collective_table(ranks, page) + "\n" + wrap(notes, page.width, 0) + "\n";
}

nlohmann::ordered_json rank_json(const GpuProcess& process) {
  auto collectives = nlohmann::ordered_json::array();
  for (const CollectiveSum& sum : process.collectives)
    collectives.push_back(
        {{"name", sum.name}, {"calls", sum.calls}, {"bytes", sum.bytes}, {"modelled_time_ns", sum.time_ns}});
  const NcclMemory nccl = estimate_nccl_memory(process.communicators);
  return {{"communicators", process.communicators},
          {"exposed_collectives_ns", process.exposed_collectives_ns},
          {"estimated_nccl_bytes", {nccl.least, nccl.most}},
          {"collectives", std::move(collectives)}};
}

}  // namespace offprof
