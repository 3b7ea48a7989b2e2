#pragma once

#include <concepts>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/status_line.h"
#include "cli/terminal/terminal.h"

namespace offprof {

/// Format of a command's result. Only `gate` has the last three.
enum class ReportFormat { kText, kJson, kMarkdown, kGithub, kJunit };

/// Formats by the names that `--format` has for them.
using FormatChoices = std::vector<std::pair<std::string, ReportFormat>>;

/// Returns the formats that every command has.
inline FormatChoices common_formats() {
  return {{"text", ReportFormat::kText}, {"json", ReportFormat::kJson}};
}

/// The flags that every command accepts.
struct CommonOptions {
  ReportFormat format = ReportFormat::kText;
  ColorWhen color = ColorWhen::kAuto;
  bool quiet = false;
  bool verbose = false;
};

/// The result of a command: one struct, filled once. Both output formats are printed from it, so that they
/// cannot disagree. `to_json` returns the report's own keys; Context adds `schema`, `command` and
/// `tool_version`.
template <class T>
concept Report = requires(const T& report, const Page& page) {
  { to_json(report) } -> std::same_as<nlohmann::ordered_json>;
  { to_text(report, page) } -> std::same_as<std::string>;
};

/// The streams of a command, and the user's settings for its output. Results go to standard output,
/// everything else to standard error.
class Context {
 public:
  /// `out` and `err` must outlive the Context. `argv` is the whole command line, program name first, as it is
  /// recorded in a trace.
  Context(std::string command, std::vector<std::string> argv, const Terminal& terminal, std::ostream& out,
          std::ostream& err);

  /// The common options; the parser writes them.
  CommonOptions& options() { return options_; }
  const CommonOptions& options() const { return options_; }
  const std::vector<std::string>& argv() const { return argv_; }
  std::ostream& out() { return out_; }
  bool quiet() const { return options_.quiet; }

  /// Print `note: ...` (useful to know) and `warning: ...` (probably a mistake of the user). `-q` suppresses
  /// only notes.
  void note(const std::string& text);
  void warn(const std::string& text);
  void warn(const std::vector<std::string>& texts);
  /// Prints a message only with `-v`.
  void detail(const std::string& text);
  StatusLine status_line();
  /// Returns true if progress is shown: standard error is a terminal, and -q is not given.
  bool shows_progress() const { return terminal_.err_is_terminal && !quiet(); }

  /// Prints a report in the requested format to `path`; `-` is standard output. Throws Error if it cannot be
  /// written.
  template <Report R>
  void publish(const R& report, const std::string& path = "-") {
    print(document(report, options_.format, path), path);
  }

  /// Returns a report as JSON, or as text for `path` in any other format.
  template <Report R>
  std::string document(const R& report, ReportFormat format, const std::string& path) const {
    return format == ReportFormat::kJson ? in_envelope(to_json(report)) : to_text(report, page_of(path));
  }

  /// Prints the report of a command that also writes a product (a trace, a policy) to `product_path`. If the
  /// product goes to standard output, the report goes to standard error.
  template <Report R>
  void publish_beside(const R& report, const std::string& product_path) {
    if (product_path != "-") return publish(report);
    const Page page = error_page();
    err_ << (options_.format == ReportFormat::kJson ? in_envelope(to_json(report)) : to_text(report, page));
  }

  /// Writes a document to a file, completely or not at all; `-` is standard output.
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
