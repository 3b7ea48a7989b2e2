#include "cli/gate/gate_config.h"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string_view>
#include <utility>

#include "cli/options/device_options.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr std::size_t kMostConfigBytes = std::size_t{1} << 20;
constexpr const char* kDefaultBaselines = "offprof-baselines.json";
constexpr const char* kDefaultDevice = "virtual";

/// A table of the file, with its name for errors.
class Section {
 public:
  Section(const toml::table& table, std::string name, const std::string& path)
      : table_(table), name_(std::move(name)), path_(path) {}

  [[noreturn]] void fail(const toml::node& at, const std::string& what, const std::string& hint = {}) const {
    throw input_error(
        fmt::format("{}:{}:{}: {}", path_, at.source().begin.line, at.source().begin.column, what), hint);
  }
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    fail(table_, what, hint);
  }

  void allow_only(const std::vector<std::string>& keys) const {
    for (const auto& [key, value] : table_) {
      const std::string name(key.str());
      if (std::ranges::find(keys, name) != keys.end()) continue;
      const std::string suggestion = did_you_mean(name, keys);
      std::string hint = suggestion + (suggestion.empty() ? "" : " ") + "Keys of [" + name_ + "]:";
      for (const std::string& known : keys) hint += " " + known;
      throw input_error(fmt::format("{}:{}:{}: [{}] has no key '{}'", path_, key.source().begin.line,
                                    key.source().begin.column, name_, name),
                        hint);
    }
  }

  bool has(std::string_view key) const { return table_.contains(key); }

  std::string text(std::string_view key, const std::string& absent = {}) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return absent;
    if (const auto* const value = node->as_string()) return value->get();
    fail(*node, fmt::format("{} must be a text", key), fmt::format("Write {} = \"...\".", key));
  }

  std::vector<std::string> texts(std::string_view key, const std::vector<std::string>& absent = {}) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return absent;
    const toml::array* const array = node->as_array();
    std::vector<std::string> values;
    if (array != nullptr)
      for (const toml::node& element : *array)
        if (const auto* const value = element.as_string()) values.push_back(value->get());
    if (array == nullptr || values.size() != array->size())
      fail(*node, fmt::format("{} must be a list of texts", key), fmt::format("Write {} = [\"...\"].", key));
    return values;
  }

  std::vector<Limit> limits(const std::vector<Limit>& absent) const {
    if (!has("limits")) return absent;
    std::vector<Limit> limits;
    for (const std::string& text : texts("limits"))
      check("limits", [&] { limits.push_back(parse_limit(text)); });
    return limits;
  }

  /// Calls `read`. Its Error gets the place of that key in the file.
  void check(std::string_view key, const std::function<void()>& read) const {
    try {
      read();
    } catch (const Error& error) {
      const toml::node* const node = table_.get(key);
      fail(node == nullptr ? table_ : *node, error.what(), error.hint());
    }
  }

  /// Returns the table of that name; nullopt if there is none.
  std::optional<Section> section(std::string_view key) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return std::nullopt;
    if (const toml::table* const table = node->as_table())
      return Section(*table, fmt::format("{}{}{}", name_, name_.empty() ? "" : ".", key), path_);
    fail(*node, fmt::format("{} must be a table", key));
  }

  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& [key, value] : table_) keys.emplace_back(key.str());
    return keys;
  }

 private:
  const toml::table& table_;
  std::string name_;
  const std::string& path_;
};

/// Settings that all models of a file have in common.
struct Defaults {
  std::string folder;  ///< of the file, with a slash at its end; empty: the working folder
  std::vector<std::string> devices;
  std::vector<Limit> limits;
};

void add_option(std::vector<std::string>& words, const char* flag, const std::vector<std::string>& values) {
  for (const std::string& value : values) words.insert(words.end(), {flag, value});
}

std::vector<std::string> run_words(const Section& model, const std::string& program,
                                   const std::string& device) {
  std::vector<std::string> words = {"run"};
  if (model.has("module"))
    words.insert(words.end(), {"-m", model.text("module")});
  else
    words.push_back(program);
  words.insert(words.end(), {"--device", device});
  add_option(words, "--input", model.texts("inputs"));
  if (model.has("policy")) add_option(words, "--policy", {model.text("policy")});
  const std::vector<std::string> options = model.texts("options");
  words.insert(words.end(), options.begin(), options.end());
  const std::vector<std::string> arguments = model.texts("arguments");
  if (!arguments.empty()) words.emplace_back("--");
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

void add_jobs(const Section& model, const std::string& name, const Defaults& defaults,
              std::vector<GateJob>& jobs) {
  model.allow_only(
      {"program", "module", "trace", "arguments", "inputs", "policy", "options", "devices", "limits"});
  const std::vector<Limit> limits = model.limits(defaults.limits);
  const bool has_trace = model.has("trace");
  if (has_trace + model.has("program") + model.has("module") != 1)
    model.fail(fmt::format("model '{}' needs one of program, module and trace", name),
               "Write program = \"train.py\", or trace = \"t.json.gz\" if another step records it.");
  if (has_trace) {
    for (const char* key : {"arguments", "inputs", "policy", "options", "devices"})
      if (model.has(key))
        model.fail(
            fmt::format("model '{}' has a trace, which is not recorded here: {} has no effect", name, key),
            "Remove it.");
    jobs.push_back({.key = name,
                    .trace = defaults.folder + model.text("trace"),
                    .source_root = defaults.folder,
                    .limits = limits});
    return;
  }
  const std::string program = model.has("program") ? defaults.folder + model.text("program") : std::string();
  const std::vector<std::string> devices = model.texts("devices", defaults.devices);
  if (devices.empty())
    model.fail(fmt::format("model '{}' has no device", name), "Write devices = [\"virtual:h100-80gb\"].");
  for (const std::string& device : devices) {
    model.check("devices", [&] { check_device(device); });
    GateJob job{.key = fmt::format("{}/{}", name, device),
                .run_words = run_words(model, program, device),
                .limits = limits};
    job.source_root = std::filesystem::path(program).parent_path().string();
    jobs.push_back(std::move(job));
  }
}

toml::table parse(const std::string& path) {
  const std::string text = read_file(path, kMostConfigBytes);
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    throw input_error(fmt::format("{}:{}:{}: {}", path, error.source().begin.line,
                                  error.source().begin.column, error.description()),
                      "The file is TOML: https://toml.io");
  }
}

}  // namespace

GateConfig read_gate_config(const std::string& path) {
  const toml::table table = parse(path);
  const Section root(table, "", path);
  root.allow_only({"gate"});
  const auto gate = root.section("gate");
  if (!gate)
    throw input_error(path + " has no table [gate]", "Add [gate], and [gate.models.NAME] for each model.");
  gate->allow_only({"baselines", "devices", "limits", "models"});
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Defaults defaults{.folder = folder.empty() ? "" : folder + "/",
                          .devices = gate->texts("devices", {kDefaultDevice}),
                          .limits = gate->limits({})};
  GateConfig config{
      .path = path, .baselines = defaults.folder + gate->text("baselines", kDefaultBaselines), .jobs = {}};
  if (const auto models = gate->section("models"))
    for (const std::string& name : models->keys()) {
      const auto model = models->section(name);
      add_jobs(*model, name, defaults, config.jobs);
    }
  if (config.jobs.empty())
    gate->fail("[gate] lists no model", "Add [gate.models.NAME] with program = \"train.py\".");
  return config;
}

}  // namespace offprof
