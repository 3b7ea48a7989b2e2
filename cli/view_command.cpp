#include "cli/view_command.h"

#include "cli/options.h"
#include "cli/view_report.h"
#include "traces/trace_io.h"

namespace offprof {
namespace {

class ViewCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("TRACE", trace_, "A trace of `offprof run` or `offprof simulate`")->required();
    add_count_option(app, "--top", ops_shown_, 0, kMostShown, "Operators shown (default 10)");
    add_output_option(app, output_, "Where the summary goes (default -)");
  }

  ExitStatus run(Context& context) override {
    context.detail("reading " + trace_ + ", and replaying its step");
    context.publish(make_view_report(read_trace(trace_), trace_, ops_shown_), output_);
    return ExitStatus::kOk;
  }

 private:
  static constexpr std::int64_t kMostShown = 1'000'000;

  std::string trace_;
  std::size_t ops_shown_ = 10;
  std::string output_ = "-";
};

}  // namespace

std::unique_ptr<Subcommand> make_view_command() {
  return std::make_unique<ViewCommand>();
}

}  // namespace offprof
