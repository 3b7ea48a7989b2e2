#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/snapshots/snapshot_export.h"
#include "cli/snapshots/snapshot_import.h"
#include "cli/tables/figure_text.h"
#include "cli/tables/metrics_table.h"
#include "simulator/other_engines/engine_import.h"
#include "simulator/steps/trace_steps.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

struct ImportReport {
  const ImportSource* source = nullptr;
  std::string config{}, trace{};  ///< paths; `trace` is empty without one
  EngineImport result{};
  std::optional<Metrics> predicted{};
  std::string inexactness{};  ///< empty: the figures are exact
  bool times_are_modelled = false;
};

/// Returns one sentence that says whose figures a report has.
std::string owner_of_figures(const ImportReport& report) {
  if (report.result.has_engine_rules)
    return fmt::format("The figures are those of {}, whose rules the policy has.", report.source->title);
  return fmt::format(
      "The figures are those of offprof's engine under this policy: offprof does not model {}'s rules.",
      report.source->title);
}

nlohmann::ordered_json to_json(const ImportReport& report) {
  nlohmann::ordered_json json = {{"source", report.source->name},
                                 {"config", report.config},
                                 {"policy", to_json(report.result.policy)},
                                 {"has_engine_rules", report.result.has_engine_rules}};
  if (report.result.parameters) json["parameters"] = to_json(*report.result.parameters);
  if (report.predicted) {
    json["trace"] = report.trace;
    json["predicted"] = metrics_to_json(*report.predicted);
    if (report.times_are_modelled) json["times_are_modelled"] = true;
    if (!report.inexactness.empty()) json["may_be_inexact"] = true;
  }
  json["differences"] = report.result.differences;
  return json;
}

std::string to_text(const ImportReport& report, const Page& page) {
  std::string text = wrap(fmt::format("{}, settings of {}: {}", report.config, report.source->title,
                                      describe(report.result.policy)),
                          page.width, 0) +
                     "\n";
  if (report.result.parameters) text += fmt::format("Parameters {}.\n", describe(report.result.parameters));
  if (report.predicted)
    text += "\n" + metrics_table({{"predicted", *report.predicted}}, page) +
            times_line(report.times_are_modelled, page) + wrap(owner_of_figures(report), page.width, 0) +
            "\n";
  if (report.result.differences.empty()) return text;
  text += fmt::format("\nDifferences between the policy and {}:\n", report.source->title);
  for (const std::string& difference : report.result.differences)
    text += "- " + wrap(difference, page.width - 2, 2) + "\n";
  return text;
}

class ImportCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("config", config_,
                   "Settings: deepspeed: JSON; megatron: a file with the command line; trl: YAML, JSON, or "
                   "Python code with OffloadActivations(...); memory-snapshot: a file of "
                   "torch.cuda.memory._dump_snapshot")
        ->type_name("CONFIG")
        ->required();
    std::vector<std::pair<std::string, const ImportSource*>> sources;
    for (const ImportSource& source : import_sources()) sources.emplace_back(source.name, &source);
    sources.emplace_back(kMemorySnapshot, nullptr);
    from_ = add_choice_option(
        app, "--from", source_, sources,
        "Engine that the settings are for, or memory-snapshot: the memory of a run that offprof did not "
        "make (default for a pickle)");
    app.add_option("--trace", trace_path_,
                   "Trace of a run, on which the figures are predicted (default: none)")
        ->type_name("FILE");
    add_assumed_link_option(app, link_, "Link to assume (default: the link that the run measured)");
    add_output_option(app, output_,
                      "File for the policy, or for the trace of a snapshot (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    check_writable(output_);
    if (from_->count() == 0 && !is_pickle(config_)) refuse_unnamed();
    if (source_ == nullptr) {
      context.publish_beside(import_snapshot(config_, output_), output_);
      return ExitStatus::kOk;
    }
    ImportReport report{.source = source_, .config = config_, .trace = trace_path_};
    report.result = source_->read(read_file(config_, kMostConfigBytes), config_);
    if (!trace_path_.empty()) predict(context, report);
    PolicyFile file{report.result.policy, report.predicted, {}};
    file.parameters = report.result.parameters;
    context.print(format_policy_file(file), output_);
    context.publish_beside(report, output_);
    return ExitStatus::kOk;
  }

 private:
  /// Longer texts are no settings.
  static constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;

  /// Throws Error (input): the file cannot be read, or has settings of an engine that is not named.
  [[noreturn]] void refuse_unnamed() const {
    read_file(config_, kMostConfigBytes);
    std::vector<std::string> names;
    for (const ImportSource& source : import_sources()) names.emplace_back(source.name);
    throw input_error(fmt::format("'{}' does not say which engine's settings it has", config_),
                      fmt::format("Name the engine with --from: {}.", fmt::join(names, ", ")));
  }

  /// Returns true if the file begins as Python's pickles of protocol 2 and later do.
  static bool is_pickle(const std::string& path) {
    return std::ifstream(path, std::ios::binary).get() == 0x80;
  }

  void predict(Context& context, ImportReport& report) const {
    const Trace trace = read_trace(trace_path_);
    const TraceSteps steps(trace);
    const Policy& policy = report.result.policy;
    report.predicted = steps.predict(policy, link_to_assume(link_, trace.environment.link));
    report.inexactness = steps.inexactness(policy);
    report.times_are_modelled = trace.environment.times_are_modelled;
    if (!report.inexactness.empty()) context.warn(report.inexactness);
    context.warn(steps.step(policy).place(policy).warnings);
  }

  std::string config_, trace_path_, output_ = "-";
  CLI::Option* from_ = nullptr;
  const ImportSource* source_ = nullptr;  ///< nullptr: a memory snapshot
  std::optional<Link> link_;
};

}  // namespace

std::unique_ptr<Subcommand> make_import_command() {
  return std::make_unique<ImportCommand>();
}

}  // namespace offprof
