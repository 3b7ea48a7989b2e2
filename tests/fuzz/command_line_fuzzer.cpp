#include <algorithm>

#include "cli/options/options.h"
#include "cli/options/usage_error.h"
#include "cli/program/command_table.h"
#include "tests/fuzz/fuzz.h"

namespace offprof {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\0')  // a null byte ends an argument of a process
      lines.back() += c;
  }
  return lines;
}

}  // namespace
}  // namespace offprof

/// Fuzzes the words of a command line, one per line; the first is the command. The words are parsed, but the
/// command does not run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  std::vector<std::string> words = lines_of(as_text(data, size));
  std::ranges::reverse(words);  // CLI11 expects the words in reverse order
  const auto& commands = command_table();
  const auto entry = std::ranges::find(commands, std::string_view(words.back()), &CommandEntry::name);
  if (entry == commands.end()) return 0;
  words.pop_back();
  const auto command = entry->make();
  CommonOptions options;
  CLI::App app;
  command->add_options(app);
  add_common_options(app, options);
  return read_or_refuse([&] {
    try {
      app.parse(words);
    } catch (const CLI::CallForHelp&) {
    } catch (const CLI::ParseError& error) {
      throw usage_error(app, error);
    }
  });
}
