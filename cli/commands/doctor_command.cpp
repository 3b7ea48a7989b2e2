#include "cli/commands/doctor_command.h"

#include <algorithm>

#include "cli/commands/commands.h"
#include "cli/options/options.h"
#include "cli/terminal/text_table.h"

namespace offprof {
namespace {

const char* name_of(Health health) {
  switch (health) {
    case Health::kWorks:
      return "ok";
    case Health::kMissing:
      return "missing";
    case Health::kOptional:
      return "optional";
  }
  return "";
}

Tone tone_of(Health health) {
  switch (health) {
    case Health::kWorks:
      return Tone::kGood;
    case Health::kMissing:
      return Tone::kBad;
    case Health::kOptional:
      return Tone::kFaint;
  }
  return Tone::kPlain;
}

class DoctorCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    add_output_option(app, output_, "File for the report (default -: standard output)");
  }

  ExitStatus run(Context& context) override {
    const DoctorReport report = make_doctor_report(examine_machine());
    context.publish(report, output_);
    return report.run_works ? ExitStatus::kOk : ExitStatus::kEnvironment;
  }

 private:
  std::string output_ = "-";
};

}  // namespace

DoctorReport make_doctor_report(std::vector<Finding> findings) {
  const bool works = std::ranges::none_of(
      findings, [](const Finding& finding) { return finding.health == Health::kMissing; });
  return {std::move(findings), works};
}

nlohmann::ordered_json to_json(const DoctorReport& report) {
  auto findings = nlohmann::ordered_json::array();
  for (const Finding& finding : report.findings) {
    nlohmann::ordered_json json = {
        {"name", finding.name}, {"status", name_of(finding.health)}, {"detail", finding.detail}};
    if (!finding.fix.empty()) json["fix"] = finding.fix;
    findings.push_back(std::move(json));
  }
  return {{"run_works", report.run_works}, {"findings", std::move(findings)}};
}

namespace {

/// Wraps a hint at the page's width. Breaks commands only after `&&`, so that a copied command still runs.
std::string hint_text(std::string hint, const Page& page, std::size_t column) {
  constexpr char kUnbroken = '\x01';
  constexpr std::string_view kAnd = "&&";
  const bool is_command = hint.find(kAnd) != std::string::npos;
  for (std::size_t i = 0; is_command && i < hint.size(); ++i)
    if (hint[i] == ' ' && !std::string_view(hint).substr(0, i).ends_with(kAnd)) hint[i] = kUnbroken;
  std::string text = wrap(hint, page.width, column);
  std::ranges::replace(text, kUnbroken, ' ');
  return text;
}

const char* verdict_of(const DoctorReport& report) {
  if (report.run_works) return "Everything that `offprof run` needs works on this machine.";
  const bool engine_works = std::ranges::any_of(report.findings, [](const Finding& finding) {
    return finding.name == "engine" && finding.health == Health::kWorks;
  });
  return engine_works
             ? "`offprof run` works on this machine, except on the devices that are missing above."
             : "`offprof run` does not work on this machine; tune, simulate, gate, diff and view do.";
}

}  // namespace

std::string to_text(const DoctorReport& report, const Page& page) {
  std::string text;
  constexpr std::size_t kStatusWidth = 10;
  constexpr std::size_t kDetailColumn = 27;
  constexpr std::string_view kFix = "fix: ";
  for (const Finding& finding : report.findings) {
    const std::string status = name_of(finding.health);
    text += page.paint(tone_of(finding.health), status) + std::string(kStatusWidth - status.size(), ' ');
    text += finding.name + std::string(kDetailColumn - kStatusWidth - display_width(finding.name), ' ');
    text += wrap(finding.detail, page.width, kDetailColumn) + "\n";
    if (finding.fix.empty()) continue;
    text += std::string(kDetailColumn, ' ') + std::string(kFix);
    text += hint_text(finding.fix, page, kDetailColumn + kFix.size()) + "\n";
  }
  return text + "\n" + wrap(verdict_of(report), page.width, 0) + "\n";
}

std::unique_ptr<Subcommand> make_doctor_command() {
  return std::make_unique<DoctorCommand>();
}

}  // namespace offprof
