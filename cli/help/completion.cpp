#include "cli/help/completion.h"

#include <fmt/format.h>

#include <algorithm>

namespace offprof {
namespace {

constexpr const char* kEndOfOptions = "--";
/// CLI11's name of the type of a text that has no type of its own.
constexpr const char* kUntyped = "TEXT";

bool is_option_word(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// Returns the option that a word such as `-o`, `-ofile`, `--output` or `--output=file` names; null: none.
const CLI::Option* find_option(const CLI::App& app, const std::string& word) {
  const bool is_long = word.starts_with("--");
  const std::string name = is_long ? word.substr(2, word.find('=') - 2) : word.substr(1, 1);
  for (const CLI::Option* option : app.get_options()) {
    const auto& names = is_long ? option->get_lnames() : option->get_snames();
    if (std::ranges::find(names, name) != names.end()) return option;
  }
  return nullptr;
}

std::vector<const CLI::App*> actions_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// Returns the positional argument at that position; null: the command takes fewer.
const CLI::Option* positional_at(const CLI::App& app, std::size_t position) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->nonpositional()) continue;
    const auto most = static_cast<std::size_t>(option->get_items_expected_max());
    if (position < most) return option;
    position -= most;
  }
  return nullptr;
}

/// Returns a description without line breaks, up to the end of its first sentence.
std::string first_sentence(const std::string& description) {
  const std::size_t end = std::min({description.find(". "), description.find("; "), description.find('\n')});
  return description.substr(0, end);
}

/// The state of a command line before the word that is completed.
class LineReader {
 public:
  explicit LineReader(const CLI::App& program) : program_(program), app_(&program) {}

  void read(const std::string& word) {
    if (awaited_ != nullptr) {
      awaited_ = nullptr;
    } else if (options_ended_ || !is_option_word(word)) {
      read_argument(word);
    } else if (word == kEndOfOptions) {
      options_ended_ = true;
    } else {
      read_option(word);
    }
  }

  Completion complete(const std::string& word) const {
    if (awaited_ != nullptr) return complete_value(*awaited_, "", word);
    if (!options_ended_ && is_option_word(word)) return complete_option(word);
    if (const CLI::Option* argument = positional_at(*app_, arguments_))
      return complete_argument(*argument, word);
    return complete_action(word);
  }

 private:
  void read_argument(const std::string& word) {
    const auto actions = actions_of(*app_);
    const auto action = std::ranges::find(actions, word, [](const CLI::App* app) { return app->get_name(); });
    if (action == actions.end()) {
      ++arguments_;
      return;
    }
    app_ = *action;
    arguments_ = 0;
  }

  void read_option(const std::string& word) {
    const CLI::Option* option = find_option(*app_, word);
    if (option == nullptr) return;
    given_.push_back(option);
    const bool has_value = word.starts_with("--") ? word.find('=') != std::string::npos : word.size() > 2;
    if (takes_value(*option) && !has_value) awaited_ = option;
  }

  Completion complete_option(const std::string& word) const {
    const std::size_t equals = word.find('=');
    if (word.starts_with("--") && equals != std::string::npos) {
      const CLI::Option* option = find_option(*app_, word);
      const bool has_value = option != nullptr && takes_value(*option);
      return has_value ? complete_value(*option, word.substr(0, equals + 1), word.substr(equals + 1))
                       : Completion{};
    }
    Completion found;
    for (const CLI::Option* option : app_->get_options()) {
      if (std::ranges::find(given_, option) != given_.end() && option->get_items_expected_max() <= 1)
        continue;
      for (const std::string& name : option->get_lnames()) add(found, "--" + name, *option, word);
      if (option->get_lnames().empty())
        for (const std::string& name : option->get_snames()) add(found, "-" + name, *option, word);
    }
    return found;
  }

  static void add(Completion& found, std::string name, const CLI::Option& option, const std::string& begin) {
    if (name.starts_with(begin))
      found.candidates.push_back({std::move(name), first_sentence(option.get_description())});
  }

  /// `prefix` is the part of the word before the value.
  static Completion complete_value(const CLI::Option& option, std::string prefix, std::string value) {
    const char delimiter = option.get_delimiter();
    const std::size_t last = delimiter == '\0' ? std::string::npos : value.rfind(delimiter);
    if (last != std::string::npos) {
      prefix += value.substr(0, last + 1);
      value.erase(0, last + 1);
    }
    return from(candidates_of_type(option.get_type_name()), prefix, value);
  }

  static Completion from(const ValueCandidates& values, const std::string& prefix, const std::string& begin) {
    Completion found{values.shell_names, {}};
    for (const std::string& word : values.words)
      if (word.starts_with(begin)) found.candidates.push_back({prefix + word, ""});
    return found;
  }

  /// Most arguments are files. After `--` the words belong to another program, so any of them may be a file.
  Completion complete_argument(const CLI::Option& argument, const std::string& word) const {
    const std::string type = argument.get_type_name();
    const bool is_program = type == "PROGRAM";
    if (type == "COMMAND") return actions_with_prefix(program_, word);
    if (type == kUntyped || (is_program && arguments_ > 0)) return {ShellNames::kFiles, {}};
    return from(candidates_of_type(type), "", word);
  }

  static Completion actions_with_prefix(const CLI::App& app, const std::string& prefix) {
    Completion found;
    for (const CLI::App* action : actions_of(app))
      if (action->get_name().starts_with(prefix))
        found.candidates.push_back({action->get_name(), action->get_description()});
    return found;
  }

  Completion complete_action(const std::string& word) const {
    Completion found = actions_with_prefix(*app_, word);
    return found.candidates.empty() && word.empty() && !options_ended_ ? complete_option("-") : found;
  }

  const CLI::App& program_;
  const CLI::App* app_;  ///< the command or action whose words follow
  std::size_t arguments_ = 0;
  const CLI::Option* awaited_ = nullptr;  ///< the option whose value is the next word
  bool options_ended_ = false;
  std::vector<const CLI::Option*> given_;
};

const char* name_of(ShellNames names) {
  switch (names) {
    case ShellNames::kNone:
      return "none";
    case ShellNames::kFiles:
      return "files";
    case ShellNames::kFolders:
      return "folders";
    case ShellNames::kPrograms:
      return "programs";
  }
  return "none";
}

}  // namespace

Completion complete(const CLI::App& program, const std::vector<std::string>& words) {
  LineReader reader(program);
  for (std::size_t i = 0; i + 1 < words.size(); ++i)
    if (i > 0 || words[i] != "help") reader.read(words[i]);
  return reader.complete(words.back());
}

std::string to_lines(const Completion& completion) {
  std::string text = fmt::format("{}\n", name_of(completion.shell_names));
  for (const CompletionCandidate& candidate : completion.candidates)
    text += fmt::format("{} {}\n", candidate.word, candidate.description);
  return text;
}

}  // namespace offprof
