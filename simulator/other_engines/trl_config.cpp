#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <sstream>

#include "simulator/other_engines/import_sources.h"
#include "traces/base/error.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

constexpr const char* kClass = "OffloadActivations(";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// Returns the value of a keyword argument in Python code, up to the next comma, bracket or blank; nullopt if
/// the argument is absent.
std::optional<std::string> keyword_text(const std::string& code, std::string_view keyword) {
  for (std::size_t at = code.find(keyword); at != std::string::npos; at = code.find(keyword, at + 1)) {
    if (at > 0 && is_word(code[at - 1])) continue;
    const std::size_t equals = code.find_first_not_of(" \t", at + keyword.size());
    if (equals == std::string::npos || code[equals] != '=') continue;
    const std::size_t begin = code.find_first_not_of(" \t", equals + 1);
    if (begin == std::string::npos) return "";
    return code.substr(begin, std::min(code.find_first_of(",) \t\r\n", begin), code.size()) - begin);
  }
  return std::nullopt;
}

/// Returns the number of a keyword argument; nullopt if the argument is absent. Throws Error (input) if it is
/// no plain number.
std::optional<std::int64_t> keyword_number(const std::string& code, std::string_view keyword,
                                           const std::string& path) {
  const auto text = keyword_text(code, keyword);
  if (!text) return std::nullopt;
  std::string digits = *text;
  std::erase(digits, '_');
  std::int64_t value = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0)
    throw input_error(fmt::format("{}: {}={} is not a whole number", path, keyword, *text));
  return value;
}

/// Returns the arguments of the first call of the class.
std::string arguments_of(const std::string& code, const std::string& path) {
  const std::size_t begin = code.find(kClass) + std::string_view(kClass).size();
  const std::size_t end = code.find(')', begin);
  if (end == std::string::npos) throw input_error(fmt::format("{}: {} has no end", path, kClass));
  return code.substr(begin, end - begin);
}

/// Returns the rules that keep the modules of the list `KEPT`, which exported code has.
std::vector<PolicyRule> kept_rules(const std::string& code) {
  constexpr std::string_view kList = "KEPT = [";
  std::vector<PolicyRule> rules;
  const std::size_t list = code.find(kList);
  if (list == std::string::npos) return rules;
  const std::size_t end = std::min(code.find(']', list), code.size());
  std::size_t begin = code.find('"', list);
  while (begin < end) {
    const std::size_t close = std::min(code.find('"', begin + 1), end);
    for (const char* below : {"", ".*"})
      rules.push_back({.module = code.substr(begin + 1, close - begin - 1) + below, .placement = {}});
    begin = code.find('"', close + 1);
  }
  return rules;
}

EngineImport from_class(const std::string& code, const std::string& path) {
  const std::string arguments = arguments_of(code, path);
  EngineImport result;
  result.policy = preset_policy("trl");
  if (const auto size = keyword_number(arguments, "min_offload_size", path))
    result.policy.threshold_bytes = size;
  if (const auto stash = keyword_number(arguments, "max_fwd_stash_size", path)) {
    if (*stash < 1) throw input_error(path + ": max_fwd_stash_size has to be at least 1");
    result.policy.stash_count = stash;
  }
  result.has_engine_rules = keyword_text(arguments, "use_streams") != "False";
  if (!result.has_engine_rules)
    result.differences.emplace_back(
        "use_streams=False makes TRL wait for each copy, without a stash; the policy has streams.");
  result.policy.rules = kept_rules(code);
  if (result.policy.rules.empty() && code.find("NoOpManager(") != std::string::npos) {
    result.has_engine_rules = false;
    result.differences.emplace_back(
        "Modules that the code keeps with NoOpManager are not read: add a rule for each.");
  }
  return result;
}

/// Returns the value of a key of a flat YAML file, without quotes and comments; nullopt if it is absent.
std::optional<std::string> yaml_value(const std::string& text, const std::string& key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key + ":")) continue;
    std::string value = line.substr(key.size() + 1);
    value = value.substr(0, value.find('#'));
    std::erase_if(value,
                  [](char c) { return std::string_view(" \t\r'\"").find(c) != std::string_view::npos; });
    return value;
  }
  return std::nullopt;
}

bool yaml_bool(const std::string& text, const std::string& key, const std::string& path) {
  const auto value = yaml_value(text, key);
  if (!value) return false;
  std::string word = *value;
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off" || word.empty() || word == "null") return false;
  throw input_error(fmt::format("{}: {}: '{}' is neither true nor false", path, key, *value));
}

EngineImport from_trainer(bool offloads, bool checkpoints) {
  EngineImport result;
  result.policy = preset_policy(offloads ? "trl-trainer" : "keep");
  result.has_engine_rules = true;
  if (offloads)
    result.differences.emplace_back(
        "Trainers keep the tensors of the output head; the policy knows it as lm_head.");
  if (checkpoints)
    result.differences.emplace_back(
        "gradient_checkpointing changes the step itself: record a trace of the training with it.");
  return result;
}

EngineImport from_json(const std::string& text, const std::string& path) {
  const nlohmann::json document = parse_document(text, path);
  const JsonValue json(document, path + ": ");
  const auto is_set = [&](std::string_view key) {
    const auto value = json.find(key);
    return value && value->as_bool();
  };
  return from_trainer(is_set("activation_offloading"), is_set("gradient_checkpointing"));
}

}  // namespace

EngineImport import_from_trl(const std::string& text, const std::string& path) {
  if (text.find(kClass) != std::string::npos) return from_class(text, path);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && text[first] == '{') return from_json(text, path);
  return from_trainer(yaml_bool(text, "activation_offloading", path),
                      yaml_bool(text, "gradient_checkpointing", path));
}

}  // namespace offprof
