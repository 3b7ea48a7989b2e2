#include <fmt/format.h>
#include <fmt/ranges.h>

#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/base/version.h"
#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/page/report_page.h"
#include "cli/page/verdict.h"
#include "cli/reports/next_command.h"
#include "cli/reports/view_report.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/tuner/tune.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

/// Output of `offprof report` beside the page.
struct PageSummary {
  std::string page;  ///< path of the page
  std::size_t bytes = 0;
  Verdict verdict;
};

nlohmann::ordered_json to_json(const PageSummary& summary) {
  return {{"page", summary.page}, {"page_bytes", summary.bytes}, {"verdict", summary.verdict.sentences}};
}

std::string to_text(const PageSummary& summary, const Page& page) {
  std::string text;
  for (const std::string& sentence : summary.verdict.sentences) text += wrap(sentence, page.width, 0) + "\n";
  return text + fmt::format("\n{}: {}. Open it in a browser; it needs no network.\n", summary.page,
                            format_bytes(static_cast<Bytes>(summary.bytes)));
}

/// Returns a name for each trace: that of its policy, or else that of its file, or else its path.
std::vector<std::string> labels_of(const std::deque<Trace>& traces, const std::vector<std::string>& paths) {
  std::vector<std::string> policies, files;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    policies.push_back(traces[i].policy.name);
    files.push_back(std::filesystem::path(paths[i]).filename().string());
  }
  for (const std::vector<std::string>& names : {policies, files})
    if (std::set(names.begin(), names.end()).size() == names.size()) return names;
  return paths;
}

std::string subtitle_of(const Trace& trace) {
  if (trace.model.is_memory_snapshot())
    return "of PyTorch's allocator: model, device and optimizer are not known";
  std::string text = trace.environment.device_name;
  if (!trace.settings.inputs.empty()) text += fmt::format(" · {}", fmt::join(trace.settings.inputs, ", "));
  text += fmt::format(" · optimizer {}", trace.settings.optimizer);
  if (!trace.gradients.empty()) text += fmt::format(" · gradients {}", trace.gradients);
  if (trace.environment.times_are_modelled) text += " · times are modelled, not measured";
  return text;
}

class ReportCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    traces_.add_several_to(app, "Trace of `offprof run` or `offprof simulate`; several are compared");
    app.add_flag_callback(
        "--no-frontier", [this] { has_frontier_ = false; },
        "Leave out the frontier of policies, whose search takes most of the time");
    add_assumed_link_option(app, link_,
                            "Link to assume for the replays (default: the link that the run measured)");
    add_output_option(app, output_, "File for the page (default report.html; -: standard output)");
  }

  ExitStatus run(Context& context) override {
    check_writable(output_);
    const std::vector<std::string>& paths = traces_.paths();
    std::deque<Trace> traces;  // the runs refer to the traces
    for (const std::string& path : paths) traces.push_back(read_trace(path));
    const std::vector<std::string> labels = labels_of(traces, paths);
    std::deque<TraceSteps> steps;
    ReportPage page = described(traces.back(), context);
    for (std::size_t i = 0; i < traces.size(); ++i) {
      context.detail("replaying " + paths[i]);
      steps.emplace_back(traces[i]);
      if (const std::string why = steps.back().inexactness(traces[i].policy); !why.empty())
        context.warn(paths[i] + ": " + why);
      page.runs.push_back(reduce_trace(traces[i], steps.back(), link_of(traces[i])));
      page.runs.back().label = labels[i];
      page.runs.back().source = paths[i];
    }
    if (has_frontier_) page.frontier = search(context, traces.front(), steps.front());
    const std::string html = to_html(page);
    context.print(html, output_);
    const Verdict verdict = judge(page.runs, page.frontier ? &*page.frontier : nullptr);
    context.publish_beside(PageSummary{output_, html.size(), verdict}, output_);
    return ExitStatus::kOk;
  }

 private:
  static ReportPage described(const Trace& trace, const Context& context) {
    std::vector<std::string> words(context.argv().begin() + 1, context.argv().end());
    return {.heading = trace.model.name,
            .subtitle = subtitle_of(trace),
            .footer = fmt::format("offprof {}: {}. Memory is that of a replay. This page uses no network.",
                                  program_version(), command_line(words)),
            .runs = {}};
  }

  Link link_of(const Trace& trace) const {
    return link_ ? link_to_assume(link_, trace.environment.link) : usable_link(trace.environment.link);
  }

  /// Searches policies with the goal that `tune` has without options.
  std::optional<TuneResult> search(Context& context, const Trace& trace, const TraceSteps& steps) const {
    if (trace.tracing && trace.tracing->lost_records()) {
      context.note("the frontier is left out, because the tracer lost records and times are not reliable");
      return std::nullopt;
    }
    if (trace.program.saved.empty()) {
      context.note("the frontier is left out, because the trace has no saved tensors");
      return std::nullopt;
    }
    TuneGoal goal;
    goal.searches_plans = true;
    goal.device_memory_bytes = steps.device_memory_bytes();
    const bool keep_fits =
        !goal.device_memory_bytes || steps.fits(preset_policy("keep"), *goal.device_memory_bytes);
    if (!keep_fits) goal.memory_budget_bytes = goal.device_memory_bytes;
    StatusLine status = context.status_line();
    return tune(steps, link_of(trace), goal, [&](const std::string& what) {
      status.show("frontier: " + what);
      context.detail(what);
    });
  }

  TraceArgument traces_;
  bool has_frontier_ = true;
  std::optional<Link> link_;
  std::string output_ = "report.html";
};

}  // namespace

std::unique_ptr<Subcommand> make_report_command() {
  return std::make_unique<ReportCommand>();
}

}  // namespace offprof
