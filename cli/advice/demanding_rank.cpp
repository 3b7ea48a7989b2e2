#include "cli/advice/demanding_rank.h"

#include <filesystem>
#include <map>
#include <regex>
#include <utility>

#include "cli/advice/child_recorder.h"
#include "cli/advice/failure_reason.h"
#include "cli/plugin/foreground_command.h"
#include "cli/plugin/rank_queue.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/next_command.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

/// Returns the traces of ranks in the folder, by rank: see rank_file.
std::map<int, std::string> traces_by_rank(const std::string& folder) {
  static const std::regex kName(R"(ranks\.rank(\d+)\.json)");
  std::map<int, std::string> traces;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (std::smatch match; std::regex_match(name, match, kName))
      traces.emplace(std::stoi(match[1]), entry.path().string());
  }
  return traces;
}

}  // namespace

RecordedRank find_demanding_rank(const std::vector<std::string>& words, const std::string& said) {
  const ScratchFolder folder;
  const std::string errors = folder.file("errors.txt");
  const std::vector<std::string> run =
      with_options(words, {"--rank", "auto", "--policy", "keep", "--transforms", "recompute", "--no-timeline",
                           "--device-memory", kAmpleMemory, "-q", "-o", folder.file("ranks.json")});
  const int status = run_this_program({{run, {{kSaidVariable, said}}, errors}}).front();
  if (status != 0)
    throw input_error("the step cannot be recorded: " + failure_reason(read_file(errors), status));
  RecordedRank demanding;
  Bytes most = -1;
  for (const auto& [rank, path] : traces_by_rank(folder.path())) {
    Trace trace = read_trace(path);
    const Bytes taken = device_bytes_taken(trace.metrics);
    if (taken <= most) continue;
    demanding = {rank, std::move(trace)};
    most = taken;
  }
  return demanding;
}

}  // namespace offprof
