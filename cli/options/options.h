#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/base/context.h"
#include "traces/base/units.h"
#include "traces/format/policy_io.h"
#include "traces/model/link.h"

namespace offprof {

/// Runs `read`. If it throws an Error, puts the option's name in front of the message.
void read_for_option(const std::string& option, const std::function<void()>& read);

/// Adds an option whose text is passed to `read`. If `read` throws an Error, the option's name is put in
/// front of the message, and the program ends with status 2. `names` has CLI11's format (`-o,--output`);
/// `type` is shown in the help (`BYTES`).
CLI::Option* add_parsed_option(CLI::App& app, const std::string& names, const std::string& type,
                               std::function<void(const std::string&)> read, const std::string& what);

/// Adds an option for a byte size of at least `min`, parsed by parse_bytes: `--threshold 64KiB`.
CLI::Option* add_bytes_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                              const std::string& what, Bytes min = 0);

/// Adds `--optimizer` for models, which keeps the text that was given: see parse_optimizer.
CLI::Option* add_optimizer_option(CLI::App& app, std::string& target);

/// Smallest bare number, other than 0, that an option for a capacity or a rate accepts: `80` is far more
/// likely to be 80 gigabytes with the unit forgotten.
inline constexpr Bytes kLeastBareAmount = kMiB;

/// Parses a byte size with parse_bytes. Throws Error (input) for a bare number below kLeastBareAmount other
/// than 0.
Bytes parse_capacity(const std::string& text);

/// Parses a rate with or without its `/s`. Throws Error (input) for a bare number below kLeastBareAmount.
double parse_bandwidth(const std::string& text);

/// Adds an option for the capacity of a memory or a disk, of at least `min`, parsed by parse_capacity:
/// `--device-memory 80GiB`. For sizes of single tensors small numbers make sense, so these options use
/// add_bytes_option: `--threshold`, `--stash-bytes`, `--prefetch`.
CLI::Option* add_capacity_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                                 const std::string& what, Bytes min = 0);

/// Minimum of `--device-memory`: a device without memory cannot run anything.
inline constexpr Bytes kLeastDeviceMemory = 1;

/// Adds an option for a whole number from `min` to `max`, which is passed to `take`.
CLI::Option* add_count_option(CLI::App& app, const std::string& names, std::function<void(std::int64_t)> take,
                              std::int64_t min, std::int64_t max, const std::string& what);

/// Adds an option for a whole number that is stored in a variable: an integer, or an optional integer.
template <class Integer>
CLI::Option* add_count_option(CLI::App& app, const std::string& names, Integer& target, std::int64_t min,
                              std::int64_t max,
                              const std::string& what) requires std::is_assignable_v<Integer&, std::int64_t> {
  const auto take = [&target](std::int64_t value) { target = static_cast<Integer>(value); };
  return add_count_option(app, names, std::function<void(std::int64_t)>(take), min, max, what);
}

/// Adds an option for a whole number or `auto`, which is passed as nullopt.
CLI::Option* add_count_or_auto_option(CLI::App& app, const std::string& names,
                                      std::function<void(std::optional<std::int64_t>)> take, std::int64_t min,
                                      std::int64_t max, const std::string& what);

/// Returns a name that is one of `names` as it is, and another text as an absolute path: a command may change
/// its working directory.
std::string name_or_absolute_path(const std::string& text, const std::vector<std::string>& names);

/// Adds `--assume balanced-experts`: see VirtualGpuOptions::assumes_balanced_experts.
CLI::Option* add_assume_option(CLI::App& app, bool& balanced_experts);

/// Adds an option for a random seed: any number from 0 to 2^64 - 1.
CLI::Option* add_seed_option(CLI::App& app, std::uint64_t& target);

/// Parses `5%` or `0.05`: finite and not negative. `what` names the value in errors.
double parse_share(const std::string& text, const std::string& what);

/// Parses `5%` as 0.05: not negative, at most `most`. Rejects a number without the percent sign, since `5`
/// could also be a fraction. `what` names the value in errors.
double parse_percentage(const std::string& text, const std::string& what, double most);

/// Adds an option that is parsed by parse_share.
CLI::Option* add_share_option(CLI::App& app, const std::string& names, double& target,
                              const std::string& what);

/// Adds an option whose value is one of several words.
template <class Value>
CLI::Option* add_choice_option(CLI::App& app, const std::string& names, Value& target,
                               const std::vector<std::pair<std::string, Value>>& choices,
                               const std::string& what);

/// Adds the required option `--trace FILE`, for a command whose positional argument is something else.
CLI::Option* add_trace_option(CLI::App& app, std::string& path, const std::string& what);

/// The trace that a command reads: its positional argument, or `--trace FILE`.
class TraceArgument {
 public:
  /// This object must outlive the parse.
  void add_to(CLI::App& app, const std::string& what);
  /// Adds the argument to a command that accepts several traces.
  void add_several_to(CLI::App& app, const std::string& what);

  /// Returns at least one path. Throws Error (input) if none is given, or if the argument and `--trace`
  /// differ.
  const std::vector<std::string>& paths() const;
  const std::string& path() const { return paths().front(); }
  bool given() const { return !arguments_.empty() || !named_.empty(); }

 private:
  std::vector<std::string> arguments_, named_;
};

/// Adds `-o,--output FILE`; the default is standard output.
CLI::Option* add_output_option(CLI::App& app, std::string& path, const std::string& what);

/// Adds `--format` with its choices, `-q`, `-v` and `--color`.
void add_common_options(CLI::App& app, CommonOptions& options,
                        const FormatChoices& formats = common_formats());

/// Parses `25GB/s` or `25GB/s,10us`: bandwidth and latency per copy, both the same in each direction.
Link parse_link(const std::string& text);
/// Parses a link like parse_link, optionally followed by `,shared`: see Link::is_shared.
Link parse_assumed_link(const std::string& text);

/// Returns the link for a simulation: the given one, or else the link measured by the trace's run. Throws
/// Error (input) if neither is known.
Link link_to_assume(const std::optional<Link>& given, const Link& of_trace);

/// Adds `--link BYTES_PER_S[,LATENCY]`; `link` stays empty if the option is absent.
CLI::Option* add_link_option(CLI::App& app, std::optional<Link>& link, const std::string& what);
/// Adds `--link BYTES_PER_S[,LATENCY][,shared]` for a link that is only simulated, and may therefore be
/// shared.
CLI::Option* add_assumed_link_option(CLI::App& app, std::optional<Link>& link, const std::string& what);

/// The flags that define a policy: `--policy PRESET|FILE`, and the flags that override parts of it:
/// `--threshold`, `--stash`, `--stash-bytes`, `--prefetch`, `--copy-streams` and `--host-memory`.
class PolicyOptions {
 public:
  /// This object must outlive the parse. `preset`: the policy if no flag is given. Other flags of a policy
  /// without `--policy` refine the preset `offload`.
  void add_to(CLI::App& app, std::string preset);

  /// Returns the policy. `predicted` is present only if a
  /// policy file contains it and no flag overrides that file. Throws Error (input) if there is no such preset
  /// or file, or if flags contradict the policy.
  PolicyFile resolve() const;

  /// Returns the value of `--policy`; empty if it is absent.
  const std::string& name() const { return base_; }

  /// Returns true if any of the flags is given.
  bool given() const { return !base_.empty() || overrides(); }

 private:
  bool overrides() const;
  void refuse_contradictions(const Policy& base) const;

  std::string preset_;
  std::string base_;
  std::optional<Bytes> threshold_, stash_bytes_, prefetch_, host_memory_, disk_memory_, disk_buffer_;
  std::optional<std::int64_t> stash_;
  std::optional<int> copy_streams_;
};

// --- implementation ---

/// Throws an Error that lists `accepted` and suggests the most similar word.
[[noreturn]] void throw_not_among(const std::string& text, const std::vector<std::string>& accepted);

template <class Value>
CLI::Option* add_choice_option(CLI::App& app, const std::string& names, Value& target,
                               const std::vector<std::pair<std::string, Value>>& choices,
                               const std::string& what) {
  std::vector<std::string> words;
  for (const auto& choice : choices) words.push_back(choice.first);
  const auto read = [&target, choices, words](const std::string& text) {
    for (const auto& [word, value] : choices) {
      if (word == text) {
        target = value;
        return;
      }
    }
    throw_not_among(text, words);
  };
  std::string type;
  for (const std::string& word : words) type += (type.empty() ? "" : "|") + word;
  return add_parsed_option(app, names, type, read, what);
}

}  // namespace offprof
