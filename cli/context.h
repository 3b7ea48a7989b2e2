#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "cli/status_line.h"
#include "cli/terminal.h"

namespace offprof {

/// The schema of what `--format json` prints.
inline constexpr std::string_view kReportSchema = "offprof.report/1";

enum class ReportFormat { kText, kJson };

/// The flags that every command has.
struct CommonOptions {
  ReportFormat format = ReportFormat::kText;
  ColorWhen color = ColorWhen::kAuto;
  bool quiet = false;
  bool verbose = false;
};

/// What a command found: one struct, filled once, that both forms are printed from, so that they cannot
/// disagree. `to_json` gives the object's own keys; Context adds `schema`, `command` and `tool_version`.
template <class T>
concept Report = requires(const T& report, const Page& page) {
  { to_json(report) } -> std::same_as<nlohmann::ordered_json>;
  { to_text(report, page) } -> std::same_as<std::string>;
};

/// What a command gets to work with: its streams, and how the user wants things printed. Results go to
/// standard output, everything else to standard error.
class Context {
 public:
  /// `out` and `err` must outlive it. `argv`: the whole command line, program name first, as a trace records
  /// it.
  Context(std::string command, std::vector<std::string> argv, const Terminal& terminal, std::ostream& out,
          std::ostream& err);

  /// What the parser fills.
  CommonOptions& options() { return options_; }
  const CommonOptions& options() const { return options_; }
  const std::vector<std::string>& argv() const { return argv_; }
  std::ostream& out() { return out_; }
  bool quiet() const { return options_.quiet; }

  /// `note: ...`: worth knowing. `warning: ...`: probably not what was meant. -q silences notes only.
  void note(const std::string& text);
  void warn(const std::string& text);
  void warn(const std::vector<std::string>& texts);
  /// Shown with -v only.
  void detail(const std::string& text);
  StatusLine status_line();

  /// Prints a report in the wanted format to `path`, `-` being standard output. Throws Error where it cannot
  /// be written.
  template <Report R>
  void publish(const R& report, const std::string& path = "-") {
    const Page page = page_of(path);
    print(options_.format == ReportFormat::kJson ? in_envelope(to_json(report)) : to_text(report, page),
          path);
  }

  /// The same for a command whose product (a trace, a policy) goes to `product_path`: where that is standard
  /// output the report makes room, on standard error.
  template <Report R>
  void publish_beside(const R& report, const std::string& product_path) {
    if (product_path != "-") return publish(report);
    const Page page = error_page();
    err_ << (options_.format == ReportFormat::kJson ? in_envelope(to_json(report)) : to_text(report, page));
  }

  /// Writes a document to a file, whole or not at all, or for `-` to standard output.
  void print(const std::string& document, const std::string& path);

 private:
  Page page_of(const std::string& path) const;
  Page error_page() const;
  std::string in_envelope(const nlohmann::ordered_json& body) const;
  void say(Tone tone, const std::string& kind, const std::string& text);

  std::string command_;
  std::vector<std::string> argv_;
  Terminal terminal_;
  std::ostream& out_;
  std::ostream& err_;
  CommonOptions options_;
};

}  // namespace offprof
