#include "cli/reports/tuned_configuration.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/reports/next_command.h"
#include "cli/terminal/text_table.h"
#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

/// Returns the first difference, such as `another model`; empty if there is none.
std::string difference_between(const Trace& base, const Trace& other) {
  const RunSettings &a = base.settings, &b = other.settings;
  if (base.model.fingerprint != other.model.fingerprint) return "another model";
  if (a.inputs != b.inputs) return "other inputs";
  if (a.loss != b.loss) return "another loss";
  if (a.optimizer != b.optimizer) return "another optimizer";
  const Environment &x = base.environment, &y = other.environment;
  if (x.device != y.device || x.device_name != y.device_name) return "another device";
  if (x.threads != y.threads) return "another number of threads";
  if (x.kernel_times != y.kernel_times) return "other kernel times";
  if (a.link_cap != b.link_cap) return "another --link";
  return "";
}

std::string name_of(const RunSettings& settings) {
  const std::string flags = flags_of(settings);
  return flags.empty() ? "default" : flags;
}

}  // namespace

std::vector<std::string> configuration_words(const RunSettings& settings) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& flag, const std::string& value) {
    words.insert(words.end(), {flag, value});
  };
  if (!settings.checkpointed.empty())
    add("--checkpoint", fmt::format("{}", fmt::join(settings.checkpointed, ",")));
  if (const auto& slices = settings.slices) {
    add("--slices", slices->count ? std::to_string(*slices->count) : "auto");
    if (slices->microbatches != 1) add("--microbatches", std::to_string(slices->microbatches));
  }
  const std::string usual = settings.slices ? "host" : "none";
  const std::string place = settings.parameters ? settings.parameters->place : "none";
  if (place != usual) add("--offload-params", place);
  if (settings.parameters && settings.parameters->window_bytes)
    add("--offload-params-window", exact_bytes(*settings.parameters->window_bytes));
  return words;
}

std::string flags_of(const RunSettings& settings) {
  std::vector<std::string> words = configuration_words(settings);
  for (std::string& word : words) word = shell_word(word);
  return fmt::format("{}", fmt::join(words, " "));
}

void refuse_other_step(const Trace& base, const std::string& base_path, const Trace& other,
                       const std::string& other_path) {
  const std::string difference = difference_between(base, other);
  if (difference.empty()) return;
  throw input_error(fmt::format("{} was recorded with {} than {}: they cannot be compared", other_path,
                                difference, base_path),
                    "Record both with the same model, inputs, loss, optimizer and device, and with different "
                    "--checkpoint, --slices or --offload-params.");
}

std::string configurations_text(const std::vector<TunedConfiguration>& configurations, const Page& page) {
  if (configurations.size() < 2) return {};
  TextTable table({{"", Align::kLeft}, {"configuration", Align::kLeft}, {"keep"}, {""}, {"tuned"}, {""}});
  for (const TunedConfiguration& configuration : configurations) {
    const Tone tone = configuration.is_best ? Tone::kGood : Tone::kPlain;
    const auto taken = [](const Candidate& candidate) {
      return format_bytes(device_bytes_taken(candidate.predicted));
    };
    const auto time = [](const Candidate& candidate) {
      return format_duration(*candidate.predicted.step_time_ns);
    };
    table.add_row({{configuration.is_best ? ">" : "", tone},
                   {name_of(configuration.settings), tone},
                   {taken(configuration.keep), tone},
                   {time(configuration.keep), tone},
                   {configuration.chosen ? taken(*configuration.chosen) : "-", tone},
                   {configuration.chosen ? time(*configuration.chosen) : "-", tone}});
  }
  return wrap(
             "Configurations of the traces, each tuned for the goal (a slowdown is relative to the first one "
             "with "
             "nothing offloaded); device memory and step time:",
             page.width, 0) +
         "\n\n" + table.render(page) + "\n";
}

nlohmann::ordered_json configurations_to_json(const std::vector<TunedConfiguration>& configurations) {
  auto json = nlohmann::ordered_json::array();
  for (const TunedConfiguration& configuration : configurations) {
    nlohmann::ordered_json& row = json.emplace_back();
    row = {{"trace", configuration.trace},
           {"flags", flags_of(configuration.settings)},
           {"is_best", configuration.is_best}};
    row["keep"] = metrics_to_json(configuration.keep.predicted);
    row["chosen"] = nullptr;
    if (configuration.chosen)
      row["chosen"] = {{"policy", to_json(configuration.chosen->policy)},
                       {"predicted", metrics_to_json(configuration.chosen->predicted)}};
  }
  return json;
}

}  // namespace offprof
