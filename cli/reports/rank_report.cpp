#include "cli/reports/rank_report.h"

#include <algorithm>
#include <vector>

#include "cli/reports/rank_collectives.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

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
                   {"fits", Align::kLeft},
                   {"exposed"},
                   {"time"}});
  for (const GpuProcess* process : ranks) {
    const bool is_out = process->is_out_of_memory();
    table.add_row({std::to_string(*process->rank),
                   format_bytes(process->peaks.allocated),
                   format_bytes(process->peaks.reserved),
                   format_bytes(process->peaks.requested),
                   std::to_string(process->collectives.communicators),
                   {is_out ? "no" : "yes", is_out ? Tone::kBad : Tone::kPlain},
                   format_duration(process->collectives.exposed_ns),
                   format_duration(process->modelled_time_ns)});
  }
  return table.render(page);
}

}  // namespace

std::string rank_text(const ExecReport& report, const Page& page) {
  const std::vector<const GpuProcess*> ranks = ranks_of(report);
  if (ranks.empty()) return {};
  RanksWithCollectives collectives;
  for (const GpuProcess* process : ranks) collectives.emplace_back(*process->rank, &process->collectives);
  const std::string notes =
      "allocated, reserved, requested: peaks, by torch.cuda.memory_stats of the rank. " +
      collective_notes(collectives);
  return memory_table(ranks, page) + collective_table(collectives, page) + "\n" + wrap(notes, page.width, 0) +
         "\n";
}

}  // namespace offprof
