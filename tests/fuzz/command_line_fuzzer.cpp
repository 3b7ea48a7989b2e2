#include "cli/command.h"
#include "cli/options.h"
#include "cli/usage_error.h"
#include "tests/fuzz/fuzz.h"

namespace offprof {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines(1);
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else if (c != '\0')  // which ends a word that the system hands over
      lines.back() += c;
  }
  return lines;
}

}  // namespace
}  // namespace offprof

/// The words of a command line, a line each, behind a byte that chooses the command. They are read; the
/// command does not run.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace offprof;
  if (size == 0) return 0;
  const auto& commands = command_table();
  const auto command = commands[data[0] % commands.size()].make();
  CommonOptions options;
  CLI::App app;
  command->add_options(app);
  add_common_options(app, options);
  return read_or_refuse([&] {
    try {
      app.parse(lines_of(as_text(data + 1, size - 1)));
    } catch (const CLI::CallForHelp&) {
    } catch (const CLI::ParseError& error) {
      throw usage_error(app, error);
    }
  });
}
