#include "cli/commands/commands.h"

#include "cli/options/options.h"
#include "cli/reports/view_report.h"
#include "cli/tables/saved_listing.h"
#include "traces/analysis/timeline_diff.h"
#include "traces/format/trace_io.h"
#include "traces/timeline/timeline_reader.h"

namespace offprof {
namespace {

class ViewCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    source_.add_to(app, "Trace of `offprof run` or `offprof simulate`");
    CLI::Option* const saved =
        app.add_flag("--saved", lists_saved_, "List the tensors that autograd saves in a step");
    add_choice_option(app, "--by", by_,
                      {{"op", SavedBy::kOp},
                       {"module", SavedBy::kModule},
                       {"line", SavedBy::kLine},
                       {"dtype", SavedBy::kDtype},
                       {"placement", SavedBy::kPlacement}},
                      "With --saved: add up the tensors that have this in common")
        ->needs(saved);
    add_count_option(
        app, "--top", most_shown_, 0, kMostShown,
        "Operators to show (default 10); with --saved, show this many lines, those with the most bytes "
        "(default all)");
    add_output_option(app, output_, "File for the summary (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    trace_ = source_.path();
    context.detail("reading " + trace_ + " and replaying its step");
    const Trace trace = read_trace(trace_);
    if (lists_saved_) {
      context.publish(list_saved(trace, trace_, by_, most_shown_), output_);
    } else {
      ViewReport report = make_view_report(trace, trace_, most_shown_.value_or(kOpsShown));
      const std::optional<Timeline> timeline = read_timeline(trace_);
      report.has_timeline = timeline && shows_a_step(*timeline);
      context.publish(report, output_);
    }
    return ExitStatus::kOk;
  }

 private:
  static constexpr std::int64_t kMostShown = 1'000'000;
  static constexpr std::size_t kOpsShown = 10;

  TraceArgument source_;
  std::string trace_;
  bool lists_saved_ = false;
  std::optional<SavedBy> by_;
  std::optional<std::size_t> most_shown_;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_view_command() {
  return std::make_unique<ViewCommand>();
}

}  // namespace offprof
