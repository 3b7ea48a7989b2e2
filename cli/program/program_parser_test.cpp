#include "cli/program/program_parser.h"

#include <gmock/gmock.h>

#include <set>
#include <string>

#include "traces/io/file.h"

namespace offprof {
namespace {

/// Inserts the names of all commands and actions, and their long options with `--`.
void collect_words(const CLI::App& app, std::set<std::string>& words) {
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) words.insert("--" + name);
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.insert(command->get_name());
    collect_words(*command, words);
  }
}

// The fuzzer of the command line forms its inputs from these words.
TEST(ProgramParser, TheFuzzDictionaryHasEveryCommandAndOption) {
  const ProgramParser parser;
  std::set<std::string> words;
  collect_words(parser.app(), words);
  const std::string dictionary = read_file(OFFPROF_FUZZ_DICTIONARY);
  std::string missing;
  for (const std::string& word : words)
    if (dictionary.find('"' + word + '"') == std::string::npos) missing += '"' + word + "\"\n";
  if (!missing.empty()) ADD_FAILURE() << "Add to " << OFFPROF_FUZZ_DICTIONARY << ":\n" << missing;
}

}  // namespace
}  // namespace offprof
