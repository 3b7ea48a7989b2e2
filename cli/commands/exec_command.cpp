#include "cli/commands/commands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/rank_options.h"
#include "cli/plugin/engine_loader.h"
#include "cli/plugin/foreground_command.h"
#include "cli/plugin/python_package.h"
#include "cli/plugin/rank_queue.h"
#include "cli/plugin/scratch_folder.h"
#include "cli/reports/exec_report.h"
#include "cli/reports/next_command.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/devices/virtual_gpu/values/peer_audit.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kVirtual = "virtual";
/// More than a node has.
constexpr int kMostDevices = 1024;
/// Environment variable with what python/offprof/exec_process.py needs to know, as a JSON object.
constexpr const char* kSettingsVariable = "OFFPROF_EXEC";

/// Folders in the scratch folder: reports of processes; what ranks tell each other.
constexpr const char* kReports = "reports";
constexpr const char* kSaid = "said";

/// Returns PROFILE of `virtual[:PROFILE]`. Throws Error (input) for other devices.
std::string parse_virtual_device(const std::string& text) {
  if (text == kVirtual) return kDefaultProfile;
  if (text.starts_with(std::string(kVirtual) + ":")) return text.substr(kVirtual.size() + 1);
  throw input_error(fmt::format("'{}' is not a virtual GPU", text),
                    "Give virtual or virtual:PROFILE; without offprof, the command uses the real devices.");
}

/// Returns the words of the command line after `--`. The parser's own list, `parsed`, is not used, since the
/// parser takes an argument such as [1,2] apart. Throws Error (input) if a part of the command is before
/// `--`.
std::vector<std::string> words_after_mark(const std::vector<std::string>& argv,
                                          const std::vector<std::string>& parsed) {
  const auto mark = std::ranges::find(argv, "--");
  if (argv.end() - mark < 2 || parsed.front() != *(mark + 1)) {
    throw input_error(fmt::format("'{}' is before --, but the command has to follow it", parsed.front()),
                      "offprof exec [OPTIONS] -- COMMAND [ARGUMENTS]");
  }
  return {mark + 1, argv.end()};
}

GpuProcess read_report(const fs::path& file) {
  return parse_process_report(read_file(file.string()), file.string());
}

/// Reads the reports that processes left in the folder, in the order of their names, which begin with the
/// time. Warns of unreadable ones.
std::vector<GpuProcess> read_reports(const std::string& folder, Context& context) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::ranges::sort(files);
  std::vector<GpuProcess> processes;
  for (const fs::path& file : files) {
    try {
      processes.push_back(read_report(file));
    } catch (const Error& error) {
      context.warn(error.what());
    }
  }
  return processes;
}

class ExecCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("COMMAND", command_, "Command and its arguments, after --")
        ->required()
        ->type_name("PROGRAM");
    add_parsed_option(
        app, "--device", "virtual[:PROFILE]",
        [this](const std::string& text) { profile_ = parse_virtual_device(text); },
        fmt::format("Virtual GPU; PROFILE: {}, or a JSON file (default {})", fmt::join(profile_names(), ", "),
                    kDefaultProfile));
    add_capacity_option(app, "--device-memory", memory_limit_,
                        "Memory of the device (default: that of the profile)", kLeastDeviceMemory);
    add_count_option(app, "--devices", devices_, 1, kMostDevices,
                     "Devices that there are, for a command that starts a process for each (default 1)");
    add_rank_options(app, ranks_);
    add_assume_option(app, balanced_experts_);
    add_output_option(app, output_,
                      "File for the report (default: standard error, after the command's own output)");
  }

  ExitStatus run(Context& context) override {
    command_ = words_after_mark(context.argv(), command_);
    complete(ranks_);
    if (ranks_.world_size) refuse_launcher();
    if (ranks_.world_size && devices_)
      throw input_error("--devices and --world-size exclude each other",
                        "A rank that runs alone sees as many devices as its node has ranks: --nodes.");
    refuse_patience();
    const DeviceProfile profile = load_profile(profile_);
    if (!output_.empty()) check_writable(output_);
    const ScratchFolder scratch;
    const Ended ended = run_command(scratch);
    std::vector<GpuProcess> processes = read_reports(scratch.file(kReports), context);
    if (ranks_.world_size)
      std::ranges::stable_sort(processes, {}, [&](const GpuProcess& process) {
        return place_of(ranks_, process.rank.value_or(0));
      });
    std::vector<std::string> unmatched;
    if (ended.status == 0) unmatched = unmatched_messages(scratch.file(kSaid));
    const bool ranks_differ =
        !unmatched.empty() || std::ranges::any_of(processes, [](const GpuProcess& process) {
          return !process.collectives.mismatch.empty();
        });
    publish(context,
            {.profile = profile.name,
             .device_name = profile.device_name,
             .memory_bytes = std::min(memory_limit_.value_or(profile.memory_bytes), profile.memory_bytes),
             .command = command_,
             .world_size = ranks_.world_size,
             .nodes = ranks_.nodes,
             .exit_status = ended.status,
             .ranks_not_run = ended.ranks_not_run,
             .unmatched_messages = std::move(unmatched),
             .advise_options = advise_options(),
             .processes = std::move(processes)});
    if (ended.status == 0 && ranks_differ) return ExitStatus::kCheckFailed;
    return static_cast<ExitStatus>(ended.status);
  }

 private:
  /// Throws Error (input) if the command starts ranks of its own.
  void refuse_launcher() const {
    for (const std::string& word : command_)
      if (fs::path(word).filename() == "torchrun" || word == "torch.distributed.run")
        throw input_error(
            fmt::format("--world-size runs ranks alone, and {} starts ranks itself", word),
            fmt::format(
                "Leave out one of them: offprof exec --world-size {0} -- python train.py, or offprof exec "
                "-- {1} --nproc-per-node {0} train.py",
                *ranks_.world_size, word == "torch.distributed.run" ? "python -m " + word : "torchrun"));
  }

  /// Throws Error (input) for a time that ranks could not wait: see python/offprof/peer_ranks.py.
  static void refuse_patience() {
    const char* const seconds = std::getenv("OFFPROF_PEER_TIMEOUT");
    if (seconds == nullptr) return;
    const std::string_view text = seconds;
    if (text.empty() || text.find_first_not_of("0123456789") != std::string_view::npos ||
        text.find_first_not_of('0') == std::string_view::npos)
      throw input_error(fmt::format("OFFPROF_PEER_TIMEOUT={} is not a whole number of seconds", text),
                        "Give 1 or more.");
  }

  struct Ended {
    int status = 0;  ///< of the first rank that failed
    std::vector<int> ranks_not_run{};
  };

  /// Runs the command, or each rank until one fails for another reason than memory.
  Ended run_command(const ScratchFolder& scratch) const {
    fs::create_directory(scratch.file(kReports));
    fs::create_directory(scratch.file(kSaid));
    const std::map<std::string, std::string> variables = environment(scratch);
    if (!ranks_.world_size) return {run_in_foreground(command_, variables).status};
    RankQueue queue(ranks_.ranks, *ranks_.world_size, scratch.file(kSaid));
    Ended ended;
    while (const auto rank = next_rank(queue, ended)) {
      std::map<std::string, std::string> of_rank = rank_environment(ranks_, *rank);
      of_rank.insert(variables.begin(), variables.end());
      const std::set<fs::path> reports = files_in(scratch.file(kReports));
      const int status = run_in_foreground(command_, of_rank).status;
      if (status == kRankWaits) {
        queue.put_back();
        for (const fs::path& file : files_in(scratch.file(kReports)))
          if (!reports.contains(file)) fs::remove(file);
      } else if (status != 0) {
        if (ended.status == 0) ended.status = status;
        if (!has_run_out_of_memory(scratch.file(kReports), reports)) {
          ended.ranks_not_run = queue.left();
          break;
        }
      }
    }
    return ended;
  }

  /// Returns the next rank. Ends with those that are left if they wait for a rank that has failed.
  static std::optional<int> next_rank(RankQueue& queue, Ended& ended) {
    try {
      return queue.next();
    } catch (const Error&) {
      if (ended.status == 0) throw;
      ended.ranks_not_run = queue.left();
      return std::nullopt;
    }
  }

  /// Returns true if a process whose report is not among `earlier` was refused memory.
  static bool has_run_out_of_memory(const std::string& folder, const std::set<fs::path>& earlier) {
    return std::ranges::any_of(files_in(folder), [&](const fs::path& file) {
      return file.extension() == ".json" && !earlier.contains(file) && read_report(file).is_out_of_memory();
    });
  }

  static std::set<fs::path> files_in(const std::string& folder) {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path());
    return files;
  }

  /// Returns the variables that put the start-up hook into Python processes. Throws Error (environment) if a
  /// part of the build is missing.
  std::map<std::string, std::string> environment(const ScratchFolder& scratch) const {
    const std::string startup = python_package_folder() + "/startup";
    const char* const python_path = std::getenv("PYTHONPATH");
    const bool has_path = python_path != nullptr && *python_path != '\0';
    nlohmann::ordered_json settings = {{"profile", name_or_absolute_path(profile_, profile_names())},
                                       {"memory_limit_bytes", nullptr},
                                       {"devices", devices_.value_or(1)},
                                       {"libraries", existing_libraries()},
                                       {"reports", scratch.file(kReports)},
                                       {"said", scratch.file(kSaid)},
                                       {"is_alone", ranks_.world_size.has_value()},
                                       {"cluster", ranks_.cluster},
                                       {"balanced_experts", balanced_experts_}};
    if (memory_limit_) settings["memory_limit_bytes"] = *memory_limit_;
    return {{"PYTHONPATH", has_path ? startup + ":" + python_path : startup},
            {kSettingsVariable, settings.dump()}};
  }

  std::vector<std::string> advise_options() const {
    std::vector<std::string> options = {"--device", "virtual:" + profile_};
    if (memory_limit_) options.insert(options.end(), {"--memory-budget", exact_bytes(*memory_limit_)});
    if (!ranks_.cluster.empty()) options.insert(options.end(), {"--cluster", ranks_.cluster});
    return options;
  }

  static std::string existing_libraries() {
    std::string folder = virtual_gpu_folder();
    if (fs::is_directory(folder)) return folder;
    throw environment_error("this build of offprof has no virtual GPU: there is no folder " + folder,
                            "Run in offprof's source folder: scripts/setup.sh && cmake --preset release && "
                            "cmake --build --preset release");
  }

  /// Standard output belongs to the command.
  void publish(Context& context, const ExecReport& report) const {
    if (output_.empty()) {
      context.publish_beside(report, "-");
    } else {
      context.publish(report, output_);
    }
  }

  std::vector<std::string> command_;
  std::string profile_ = kDefaultProfile;
  std::optional<Bytes> memory_limit_;
  std::optional<int> devices_;
  RankOptions ranks_;
  bool balanced_experts_ = false;
  std::string output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_exec_command() {
  return std::make_unique<ExecCommand>();
}

}  // namespace offprof
