#include "cli/reports/exec_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "cli/reports/next_command.h"
#include "cli/reports/rank_report.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

std::vector<std::string> strings_of(const JsonValue& report, std::string_view key) {
  const auto value = report.find(key);
  return value ? value->as_strings() : std::vector<std::string>{};
}

/// Returns the command line, for a narrow column: of Python and of its scripts only the file names.
std::string command_text(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool is_program = &word == &words.front() || word.ends_with(".py");
    const std::string shown = is_program ? std::filesystem::path(word).filename().string() : word;
    text += (text.empty() ? "" : " ") + shell_word(shown);
  }
  return text;
}

nlohmann::ordered_json to_json(const GpuProcess& process) {
  nlohmann::ordered_json json = {{"pid", process.pid}, {"command", process.command}};
  if (process.rank) json["rank"] = *process.rank;
  if (!process.problem.empty()) {
    json["problem"] = process.problem;
    return json;
  }
  json["ended"] = process.ended;
  if (!process.ended) return json;
  json["peak_allocated_bytes"] = process.peaks.allocated;
  json["peak_reserved_bytes"] = process.peaks.reserved;
  json["peak_requested_bytes"] = process.peaks.requested;
  json["out_of_memory_errors"] = process.out_of_memory_errors;
  json["modelled_time_ns"] = process.modelled_time_ns;
  json["unwritten_calls"] = process.unwritten_calls;
  json["unknown_sizes"] = process.unknown_sizes;
  json["value_reads"] = process.value_reads;
  json["notes"] = process.notes;
  if (process.rank) json.update(to_json(process.collectives));
  return json;
}

std::vector<TextTable::Cell> row_of(const GpuProcess& process) {
  std::vector<TextTable::Cell> row = {std::to_string(process.pid), command_text(process.command)};
  if (!process.ended) {
    row.insert(row.end(), {"-", "-", "-", "-", "-"});
    return row;
  }
  const ProcessPeaks& peaks = process.peaks;
  for (const Bytes bytes : {peaks.allocated, peaks.reserved, peaks.requested})
    row.emplace_back(format_bytes(bytes));
  row.push_back(process.is_out_of_memory() ? TextTable::Cell("no", Tone::kBad) : TextTable::Cell("yes"));
  row.emplace_back(format_duration(process.modelled_time_ns));
  return row;
}

std::string table_of(const ExecReport& report, const Page& page) {
  TextTable table({{"pid"},
                   {"command", Align::kLeft},
                   {"allocated"},
                   {"reserved"},
                   {"requested"},
                   {"fits", Align::kLeft},
                   {"time"}});
  for (const GpuProcess& process : report.processes)
    if (process.problem.empty() && !process.rank) table.add_row(row_of(process));
  if (table.empty()) return {};
  return table.render(page) + "\n" +
         wrap(fmt::format("allocated, reserved, requested: peaks, by torch.cuda.memory_stats of the process. "
                          "Times are {}.",
                          kTimesAreModelled),
              page.width, 0) +
         "\n";
}

/// Returns the size of the job whose ranks ran alone; empty if there is none.
std::string world_text(const ExecReport& report) {
  if (!report.world_size) return {};
  const std::string nodes = report.nodes > 1 ? fmt::format(" on {} nodes", report.nodes) : std::string{};
  return fmt::format("; ranks of {}{}, each alone", *report.world_size, nodes);
}

std::string warning(const std::string& remark, const Page& page) {
  return page.paint(Tone::kWarning, "warning:") + " " + wrap(remark, page.width, 9) + "\n";
}

/// Returns remarks on a process, one per line.
std::string remarks_on(const GpuProcess& process, const Page& page) {
  std::vector<std::string> remarks;
  if (!process.problem.empty()) {
    remarks.push_back(" could not open the virtual GPU: " + process.problem);
  } else if (!process.ended) {
    remarks.emplace_back(" has no figures: it was killed, crashed, replaced itself, or is still running");
  }
  if (!process.unwritten_calls.empty()) {
    remarks.push_back(fmt::format(" called CUDA functions that the virtual GPU does not implement: {}",
                                  fmt::join(process.unwritten_calls, ", ")));
  }
  if (!process.unknown_sizes.empty()) {
    remarks.push_back(
        fmt::format(": sizes that only NVIDIA's libraries know count as 0: {}; a real GPU uses "
                    "more memory",
                    fmt::join(process.unknown_sizes, ", ")));
  }
  if (!process.value_reads.empty()) {
    remarks.push_back(
        fmt::format(" read values from the GPU ({}), most of which are zeros there: shapes and control flow "
                    "that depend on them may differ on a real GPU",
                    fmt::join(process.value_reads, ", ")));
  }
  if (const std::string mismatch = mismatch_warning(process.collectives); !mismatch.empty())
    remarks.push_back(": " + mismatch);
  for (const std::string& note : process.notes) remarks.push_back(": " + note);
  const std::string subject =
      process.rank ? fmt::format("rank {}", *process.rank) : fmt::format("process {}", process.pid);
  std::string text;
  for (const std::string& remark : remarks) text += warning(subject + remark, page);
  return text;
}

/// Returns what the failure of the command means for the figures of its ranks.
std::string failed_ranks(const ExecReport& report) {
  const GpuProcess& last = report.processes.back();
  if (report.world_size)
    return fmt::format("rank {}, the last one that ran, ended with status {}{}", *last.rank,
                       report.exit_status, last.ended ? ": its figures are those until then" : "");
  const bool all_ended = std::ranges::all_of(report.processes, &GpuProcess::ended);
  return fmt::format("the command ended with status {}: the figures of {} are those until then",
                     report.exit_status, all_ended ? "ranks" : "the other ranks");
}

std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

/// Returns the ranks that ran alone and do not fit, ascending.
std::vector<int> ranks_out_of_memory(const ExecReport& report) {
  std::vector<int> ranks;
  for (const GpuProcess& process : report.processes)
    if (report.world_size && process.is_out_of_memory()) ranks.push_back(process.rank.value_or(0));
  std::ranges::sort(ranks);
  return ranks;
}

/// Returns the line that finds out how the program fits; empty if the command is no Python script.
std::string advise_line(const ExecReport& report) {
  const std::vector<std::string>& command = report.command;
  const bool is_script = command.size() > 1 && command[1].ends_with(".py") &&
                         std::filesystem::path(command[0]).filename().string().starts_with("python");
  if (!is_script) return {};
  std::vector<std::string> words = {"advise", command[1]};
  words.insert(words.end(), report.advise_options.begin(), report.advise_options.end());
  if (report.world_size) words.insert(words.end(), {"--world-size", std::to_string(*report.world_size)});
  if (command.size() > 2) words.emplace_back("--");
  words.insert(words.end(), command.begin() + 2, command.end());
  return next_line(words);
}

/// Returns remarks on a failure of the command; empty if it did not fail.
std::string remarks_on_failure(const ExecReport& report, const Page& page) {
  if (report.exit_status == 0 || report.processes.empty()) return {};
  std::string text;
  const std::vector<int> too_large = ranks_out_of_memory(report);
  if (!too_large.empty())
    text += warning(fmt::format("out of memory, with figures until then: {}", ranks_text(too_large)), page);
  if (!report.ranks_not_run.empty())
    text += warning("not run, since a rank before failed: " + ranks_text(report.ranks_not_run), page);
  const bool last_is_explained = !too_large.empty() && report.ranks_not_run.empty();
  if (report.processes.back().rank && !last_is_explained) text += warning(failed_ranks(report), page);
  if (std::ranges::any_of(report.processes, [](const auto& process) { return !process.value_reads.empty(); }))
    text += warning(
        "if the program failed by values that it read as zeros: --assume balanced-experts gives the choice "
        "of a router of experts",
        page);
  if (std::ranges::any_of(report.processes, &GpuProcess::is_out_of_memory)) text += advise_line(report);
  return text;
}

}  // namespace

nlohmann::ordered_json to_json(const ExecReport& report) {
  auto processes = nlohmann::ordered_json::array();
  for (const GpuProcess& process : report.processes) processes.push_back(to_json(process));
  nlohmann::ordered_json json = {{"device", "virtual:" + report.profile},
                                 {"device_name", report.device_name},
                                 {"device_memory_bytes", report.memory_bytes},
                                 {"times_are_modelled", true},
                                 {"executed", report.command},
                                 {"exit_status", report.exit_status}};
  if (report.world_size)
    json.update({{"world_size", *report.world_size},
                 {"nodes", report.nodes},
                 {"ranks_not_run", report.ranks_not_run}});
  if (!report.unmatched_messages.empty()) json["unmatched_messages"] = report.unmatched_messages;
  json["processes"] = std::move(processes);
  return json;
}

std::string to_text(const ExecReport& report, const Page& page) {
  std::string text =
      page.paint(Tone::kStrong, fmt::format("Virtual GPU {}", report.profile)) +
      fmt::format(": {}, {}{}\n", report.device_name, format_bytes(report.memory_bytes), world_text(report));
  text += rank_text(report, page);
  text += table_of(report, page);
  for (const GpuProcess& process : report.processes) text += remarks_on(process, page);
  for (const std::string& message : report.unmatched_messages)
    text += warning(unmatched_warning(message), page);
  text += remarks_on_failure(report, page);
  if (!report.processes.empty()) return text;
  return text +
         wrap(
             "No process used the GPU: no Python process initialised torch.cuda. The program may "
             "have chosen the CPU. Pythons that ignore "
             "PYTHONPATH (python -I, -E or -S, or a cleared environment) stay outside.",
             page.width, 0) +
         "\n";
}

GpuProcess parse_process_report(const std::string& text, const std::string& where) {
  const nlohmann::json document = parse_document(text, where);
  const JsonValue report(document, where);
  GpuProcess process;
  process.pid = report.at("pid").as_integer(1);
  process.command = report.at("command").as_strings();
  if (const auto problem = report.find("problem")) process.problem = problem->as_string();
  if (const auto rank = report.find("rank")) process.rank = static_cast<int>(rank->as_integer());
  const auto time = report.find("modelled_time_ns");
  if (!time) return process;
  process.ended = true;
  process.modelled_time_ns = time->as_integer();
  process.peaks = {.allocated = report.at("peak_allocated_bytes").as_integer(),
                   .reserved = report.at("peak_reserved_bytes").as_integer(),
                   .requested = report.at("peak_requested_bytes").as_integer()};
  process.out_of_memory_errors = report.at("out_of_memory_errors").as_integer();
  process.unwritten_calls = strings_of(report, "unwritten_calls");
  process.unknown_sizes = strings_of(report, "unknown_sizes");
  process.value_reads = strings_of(report, "value_reads");
  process.collectives = parse_collectives(report);
  process.notes = strings_of(report, "notes");
  return process;
}

}  // namespace offprof
