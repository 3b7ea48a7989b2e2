#include "cli/reports/next_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "cli/reports/tuned_configuration.h"

namespace offprof {
namespace {

/// Characters that need no quotes in a shell, at any position of a word.
constexpr std::string_view kPlainLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-";

constexpr auto kOutput = std::to_array<std::string_view>({"--output"});
constexpr auto kOfVirtualGpu = std::to_array<std::string_view>({"--device", "--kernel-times"});
constexpr auto kDeviceMemory = std::to_array<std::string_view>({"--device-memory"});
/// Options of `run`, each with a value, that belong to one policy or one report and are left out for another.
constexpr auto kOfOneRun = std::to_array<std::string_view>(
    {"--format", "--color", "--output", "--commands", "--transforms", "--policy", "--threshold", "--stash",
     "--stash-bytes", "--prefetch", "--copy-streams", "--host-memory", "--disk-memory", "--disk-buffer"});

/// Returns the flags before the `o` of `-o`, `-qo` or `-oFILE`; nullopt if the word is not such an option.
std::optional<std::string_view> flags_before_output(std::string_view word) {
  if (word.size() < 2 || word[0] != '-' || word[1] == '-') return std::nullopt;
  const std::size_t end = word.find_first_not_of("qv", 1);
  if (end == std::string_view::npos || word[end] != 'o') return std::nullopt;
  return word.substr(0, end);
}

/// Returns `words` without the options `names`, which have one value each, and without `-o`. Keeps the
/// arguments of a script, after `--`.
std::vector<std::string> without(const std::vector<std::string>& words,
                                 std::span<const std::string_view> names) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    if (word == "--") {
      kept.insert(kept.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
      break;
    }
    const std::size_t value = word.find('=');
    if (std::ranges::find(names, word.substr(0, value)) != names.end()) {
      if (value == std::string_view::npos) ++i;
    } else if (const auto flags = flags_before_output(word)) {
      if (flags->size() > 1) kept.emplace_back(*flags);
      if (word.size() == flags->size() + 1) ++i;
    } else {
      kept.push_back(words[i]);
    }
  }
  return kept;
}

/// Returns `words` without `-q` and `-v`, but for the arguments of a script.
std::vector<std::string> without_verbosity(std::vector<std::string> words) {
  constexpr auto kFlags = std::to_array<std::string_view>({"-q", "-v", "--quiet", "--verbose"});
  const auto end = std::ranges::find(words, "--");
  const auto kept = std::remove_if(words.begin(), end, [&](const std::string& word) {
    return std::ranges::find(kFlags, std::string_view(word)) != kFlags.end();
  });
  words.erase(kept, end);
  return words;
}

std::vector<std::string> words_after_program(const std::vector<std::string>& argv) {
  return argv.empty() ? argv : std::vector<std::string>(argv.begin() + 1, argv.end());
}

/// Returns the words of a `run` that corresponds to the trace's settings, as far as flags can express them.
std::vector<std::string> run_of_settings(const Trace& trace) {
  const RunSettings& settings = trace.settings;
  std::vector<std::string> words = {"run", trace.model.name, "--device", trace.environment.device};
  for (const std::string& input : settings.inputs) words.insert(words.end(), {"--input", input});
  words.insert(words.end(), {"--loss", settings.loss, "--optimizer", settings.optimizer});
  std::ranges::copy(configuration_words(settings), std::back_inserter(words));
  if (!settings.loaded_from.empty()) words.insert(words.end(), {"--load", settings.loaded_from});
  return words;
}

/// Returns true if the run was given more memory than its device has, to record a step that does not fit.
bool exceeds_device(const Trace& trace) {
  const auto usable = usable_memory(trace.environment);
  return usable && trace.settings.device_memory_bytes.value_or(0) > *usable;
}

std::string exact_rate(double bytes_per_second) {
  return fmt::format("{:.0f}B/s", bytes_per_second);
}

}  // namespace

std::string shell_word(std::string_view word) {
  if (!word.empty() && word.find_first_not_of(kPlainLetters) == std::string_view::npos)
    return std::string(word);
  std::string quoted = "'";
  for (const char letter : word) quoted += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
  return quoted + "'";
}

Variables variables_of_run(const Trace& trace) {
  const auto& allocator = trace.program.allocator;
  if (!allocator || allocator->settings.empty()) return {};
  return {{kAllocatorVariable, allocator->settings}};
}

std::string command_line(const std::vector<std::string>& words, const Variables& variables) {
  std::string line;
  for (const auto& [name, value] : variables) line += name + "=" + shell_word(value) + " ";
  line += "offprof";
  for (const std::string& word : words) line += " " + shell_word(word);
  return line;
}

std::string next_line(const std::vector<std::string>& words, const Variables& variables) {
  return "Next: " + command_line(words, variables) + "\n";
}

std::vector<std::string> with_options(std::vector<std::string> words,
                                      const std::vector<std::string>& options) {
  words.insert(std::ranges::find(words, "--"), options.begin(), options.end());
  return words;
}

std::vector<std::string> with_output(const std::vector<std::string>& argv, const std::string& output) {
  return with_options(without(words_after_program(argv), kOutput), {"-o", output});
}

std::vector<std::string> run_with_policy(const Trace& trace, const std::string& policy_file) {
  const bool is_of_run = !trace.simulated && trace.argv.size() > 2 && trace.argv[1] == "run";
  std::vector<std::string> words =
      is_of_run ? without_verbosity(without(words_after_program(trace.argv), kOfOneRun))
                : run_of_settings(trace);
  if (exceeds_device(trace)) words = without(words, kDeviceMemory);
  return with_options(std::move(words), {"--policy", policy_file});
}

std::vector<std::string> without_virtual_gpu(const std::vector<std::string>& words) {
  return without(words, kOfVirtualGpu);
}

std::vector<std::string> without_checkpointing(const std::vector<std::string>& words) {
  std::vector<std::string> kept;
  bool is_pattern = false;
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--") {
      kept.insert(kept.end(), word, words.end());
      break;
    }
    if (word->starts_with("-")) is_pattern = *word == "--checkpoint";
    if (!is_pattern && !word->starts_with("--checkpoint=")) kept.push_back(*word);
  }
  return kept;
}

std::string exact_bytes(Bytes bytes) {
  return fmt::format("{}B", bytes);
}

std::string exact_link(const Link& link) {
  return fmt::format("{},{}ns{}", exact_rate(link.d2h.bytes_per_second), link.d2h.latency_ns,
                     link.is_shared ? ",shared" : "");
}

std::string exact_disk(const DiskLink& disk) {
  return exact_rate(disk.write.bytes_per_second) + "," + exact_rate(disk.read.bytes_per_second);
}

}  // namespace offprof
