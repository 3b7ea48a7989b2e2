#include "cli/base/context.h"

#include "cli/base/version.h"
#include "traces/analysis/figures.h"
#include "traces/io/file.h"
#include "traces/io/json_access.h"

namespace offprof {

Context::Context(std::string command, std::vector<std::string> argv, const Terminal& terminal,
                 std::ostream& out, std::ostream& err)
    : command_(std::move(command)), argv_(std::move(argv)), terminal_(terminal), out_(out), err_(err) {}

Page Context::page_of(const std::string& path) const {
  const bool on_terminal = path == "-" && terminal_.out_is_terminal;
  return {terminal_.width, wants_color(options_.color, on_terminal, terminal_), options_.verbose};
}

Page Context::error_page() const {
  return {terminal_.width, wants_color(options_.color, terminal_.err_is_terminal, terminal_),
          options_.verbose};
}

void Context::say(Tone tone, const std::string& kind, const std::string& text) {
  const std::string label = kind + ":";
  err_ << error_page().paint(tone, label) << ' ' << wrap(text, terminal_.width, label.size() + 1) << '\n';
}

void Context::note(const std::string& text) {
  if (!quiet()) say(Tone::kStrong, "note", text);
}

void Context::warn(const std::string& text) {
  say(Tone::kWarning, "warning", text);
}

void Context::warn(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) warn(text);
}

void Context::detail(const std::string& text) {
  if (options_.verbose) say(Tone::kFaint, "detail", text);
}

StatusLine Context::status_line() {
  return {err_, shows_progress(), terminal_.width};
}

std::string Context::in_envelope(const nlohmann::ordered_json& body) const {
  nlohmann::ordered_json document = {
      {"schema", kReportSchema}, {"command", command_}, {"tool_version", program_version()}};
  document.update(body);
  return dump_json(document) + "\n";
}

void Context::print(const std::string& document, const std::string& path) {
  if (path == "-") {
    out_ << document << std::flush;
  } else {
    write_file(path, document);
  }
}

}  // namespace offprof
