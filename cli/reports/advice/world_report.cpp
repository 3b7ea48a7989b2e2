#include "cli/reports/advice/world_report.h"

#include <fmt/format.h>

#include "cli/reports/advice/way_speed.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

/// PyTorch's allocator does not have NCCL's buffers, so no figure contains them: docs/how-to/many-ranks.md.
constexpr const char* kMemoryOfNccl =
    "NCCL takes 0.5 to 2 GB a communicator beside these figures: lower --memory-budget by that much";

std::string ranks_text(int count) {
  return count == 1 ? "1 rank" : fmt::format("{} ranks", count);
}

std::string verdict_text(const WorldReport& report, const Page& page) {
  const WorldAttempt& best = report.advice.best_attempt();
  const std::string ranks = ranks_text(best.world_size);
  std::string verdict;
  if (!best.is_within())
    verdict = fmt::format(
        "No number of ranks that was tried fits; nearest: {}. Try more, or a smaller batch.", ranks);
  else if (report.advice.attempts.size() == 1)
    verdict = fmt::format("{} fit{}, a GPU each.", ranks, best.world_size == 1 ? "s" : "");
  else
    verdict = fmt::format("The least number of ranks that fits is {}, a GPU each.", best.world_size);
  verdict += fmt::format(" Figures are of rank {}, which takes the most memory.", best.found->rank);
  return wrap(verdict, page.width, 0) + "\n";
}

std::string memory_of(const Way& way) {
  return format_bytes(device_bytes_taken(way.metrics()));
}

std::string attempts_text(const WorldAdvice& advice, const Page& page) {
  TextTable table({{"", Align::kLeft},
                   {"ranks"},
                   {"rank"},
                   {"nothing done"},
                   {"step"},
                   {"best way", Align::kLeft},
                   {"memory"},
                   {"step"}});
  for (const WorldAttempt& attempt : advice.attempts) {
    if (!attempt.found) continue;
    const Advice& found = attempt.found->advice;
    const Way& way = found.recommended();
    const std::string mark = &attempt == &advice.best_attempt() ? ">" : "";
    table.add_row({mark + (way.is_within ? "" : "!"), std::to_string(attempt.world_size),
                   std::to_string(attempt.found->rank), memory_of(found.nothing), time_text(found.nothing),
                   way.name, memory_of(way), time_text(way)});
  }
  std::string text = table.render(page);
  if (!advice.best_attempt().is_within() || advice.best > 0) text += "!: not within the limits\n";
  for (const WorldAttempt& attempt : advice.attempts)
    if (!attempt.found)
      text += wrap(fmt::format("not recorded: {}: {}", ranks_text(attempt.world_size), attempt.failure),
                   page.width, 2) +
              "\n";
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const WorldReport& report) {
  auto attempts = nlohmann::ordered_json::array();
  for (const WorldAttempt& attempt : report.advice.attempts) {
    nlohmann::ordered_json json = {{"world_size", attempt.world_size}};
    if (attempt.found) {
      json["rank"] = attempt.found->rank;
      json["nothing"] = way_to_json(attempt.found->advice.nothing);
      json["recommended"] = way_to_json(attempt.found->advice.recommended());
    } else {
      json["reason"] = attempt.failure;
    }
    attempts.push_back(std::move(json));
  }
  const WorldAttempt& best = report.advice.best_attempt();
  return {{"world_size", best.world_size},
          {"rank", best.found->rank},
          {"is_within", best.is_within()},
          {"attempts", std::move(attempts)},
          {"advice", to_json(report.best)}};
}

std::string to_text(const WorldReport& report, const Page& page) {
  const std::string heading = ranks_text(report.advice.best_attempt().world_size) + ", rank " +
                              std::to_string(report.advice.best_attempt().found->rank);
  return verdict_text(report, page) + "\n" + attempts_text(report.advice, page) +
         wrap(kMemoryOfNccl, page.width, 0) + "\n\n" + page.paint(Tone::kStrong, heading) + "\n" +
         to_text(report.best, page);
}

}  // namespace offprof
