#include "cli/options/usage_error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "traces/base/suggestion.h"

namespace offprof {
namespace {

/// Returns the sub-command whose flags were being parsed when the parser stopped.
CLI::App& innermost(CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app : innermost(*chosen.front());
}

std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  return parent == nullptr ? app.get_name() : full_name(*parent) + " " + app.get_name();
}

std::vector<std::string> long_flags(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::vector<std::string> action_names(const CLI::App& app) {
  std::vector<std::string> names;
  const auto all = [](const CLI::App*) { return true; };
  for (const CLI::App* action : app.get_subcommands(all)) names.push_back(action->get_name());
  return names;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

Error with_suggestion(const std::string& message, const std::string& word,
                      const std::vector<std::string>& known, const std::string& otherwise) {
  const std::string suggestion = did_you_mean(word, known);
  return input_error(message, suggestion.empty() ? otherwise : suggestion);
}

}  // namespace

Error usage_error(CLI::App& app, const CLI::ParseError& cause) {
  CLI::App& current = innermost(app);
  const std::string name = full_name(current);
  const std::string see_help = fmt::format("See `{} --help`.", name);
  const std::vector<std::string> unread = current.remaining();
  const auto flag = std::ranges::find_if(unread, is_flag);
  if (flag != unread.end()) {
    const std::string word = flag->substr(0, flag->find('='));
    return with_suggestion(fmt::format("`{}` has no option '{}'", name, word), word, long_flags(current),
                           see_help);
  }
  const std::vector<std::string> actions = action_names(current);
  if (!actions.empty()) {
    const std::string choices = fmt::format("{}", fmt::join(actions, ", "));
    if (unread.empty()) return input_error(fmt::format("`{}` needs one of: {}", name, choices), see_help);
    return with_suggestion(fmt::format("`{}` has no '{}'; it has: {}", name, unread.front(), choices),
                           unread.front(), actions, see_help);
  }
  if (!unread.empty()) return input_error(fmt::format("unexpected argument '{}'", unread.front()), see_help);
  return input_error(cause.what(), see_help);
}

}  // namespace offprof
