#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cli/context.h"
#include "traces/link.h"
#include "traces/policy_io.h"
#include "traces/units.h"

namespace offprof {

/// Runs `read`; an Error that it throws is told with the option's name in front.
void read_for_option(const std::string& option, const std::function<void()>& read);

/// Adds an option whose text `read` takes. An Error that it throws is told with the option's name in front,
/// and ends the program with status 2. `names` as CLI11 takes them (`-o,--output`), `type` as the help shows
/// it (`BYTES`).
CLI::Option* add_parsed_option(CLI::App& app, const std::string& names, const std::string& type,
                               std::function<void(const std::string&)> read, const std::string& what);

/// Byte sizes as parse_bytes reads them, of at least `min`: `--threshold 64KiB`.
CLI::Option* add_bytes_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                              const std::string& what, Bytes min = 0);

/// The least that a bare number may say in an option of a capacity or a rate, other than 0: `80` is far more
/// likely to be 80 gigabytes without their unit.
inline constexpr Bytes kLeastBareAmount = kMiB;

/// Reads a byte size as parse_bytes does. Refuses, with Error (input), a bare number below kLeastBareAmount
/// other than 0.
Bytes parse_capacity(const std::string& text);

/// Reads a rate with or without its `/s`. Refuses, with Error (input), a bare number below kLeastBareAmount.
double parse_bandwidth(const std::string& text);

/// Capacities of memory and disks as parse_capacity reads them, of at least `min`: `--device-memory 80GiB`.
/// Options of single tensors' sizes, for which small numbers make sense, are add_bytes_option's:
/// `--threshold`, `--stash-bytes`, `--prefetch`.
CLI::Option* add_capacity_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                                 const std::string& what, Bytes min = 0);

/// `--device-memory`: a device without memory runs nothing.
inline constexpr Bytes kLeastDeviceMemory = 1;

/// Whole numbers from `min` to `max`; `take` gets the one that is given.
CLI::Option* add_count_option(CLI::App& app, const std::string& names, std::function<void(std::int64_t)> take,
                              std::int64_t min, std::int64_t max, const std::string& what);

/// The same into a variable: an integer, or an optional of one.
template <class Integer>
CLI::Option* add_count_option(CLI::App& app, const std::string& names, Integer& target, std::int64_t min,
                              std::int64_t max,
                              const std::string& what) requires std::is_assignable_v<Integer&, std::int64_t> {
  const auto take = [&target](std::int64_t value) { target = static_cast<Integer>(value); };
  return add_count_option(app, names, std::function<void(std::int64_t)>(take), min, max, what);
}

/// The same, or `auto`, which is nullopt.
CLI::Option* add_count_or_auto_option(CLI::App& app, const std::string& names,
                                      std::function<void(std::optional<std::int64_t>)> take, std::int64_t min,
                                      std::int64_t max, const std::string& what);

/// A random seed: any number from 0 to 2^64 - 1.
CLI::Option* add_seed_option(CLI::App& app, std::uint64_t& target);

/// Reads `5%`, or `0.05`: finite, not negative. `what` it is, in errors.
double parse_share(const std::string& text, const std::string& what);

/// Reads `5%` as 0.05: not negative, at most `most`. A number without its sign is refused, since `5` could be
/// a share as well. `what` it is, in errors.
double parse_percentage(const std::string& text, const std::string& what, double most);

/// An option of a share.
CLI::Option* add_share_option(CLI::App& app, const std::string& names, double& target,
                              const std::string& what);

/// One of some words.
template <class Value>
CLI::Option* add_choice_option(CLI::App& app, const std::string& names, Value& target,
                               const std::vector<std::pair<std::string, Value>>& choices,
                               const std::string& what);

/// `--trace FILE`, required: of a command whose argument is something else.
CLI::Option* add_trace_option(CLI::App& app, std::string& path, const std::string& what);

/// The trace that a command reads: its argument, or `--trace FILE`.
class TraceArgument {
 public:
  /// The object must outlive the parse.
  void add_to(CLI::App& app, const std::string& what);
  /// The same for a command that takes several traces.
  void add_several_to(CLI::App& app, const std::string& what);

  /// Returns at least one path. Throws Error (input) where none is given, or an argument and `--trace`
  /// differ.
  const std::vector<std::string>& paths() const;
  const std::string& path() const { return paths().front(); }

 private:
  std::vector<std::string> arguments_, named_;
};

/// `-o,--output FILE`, by default standard output.
CLI::Option* add_output_option(CLI::App& app, std::string& path, const std::string& what);

/// `--format`, `-q`, `-v`, `--color`.
void add_common_options(CLI::App& app, CommonOptions& options);

/// Reads `25GB/s` or `25GB/s,10us`: the same bandwidth, and latency per copy, in both directions.
Link parse_link(const std::string& text);
/// Likewise, or with `,shared` behind it: see Link::is_shared.
Link parse_assumed_link(const std::string& text);

/// The link to simulate over: the one given, or else the one that the trace's run measured. Throws Error
/// (input) where neither is known.
Link link_to_assume(const std::optional<Link>& given, const Link& of_trace);

/// `--link BYTES_PER_S[,LATENCY]`; stays empty where it is not given.
CLI::Option* add_link_option(CLI::App& app, std::optional<Link>& link, const std::string& what);
/// `--link BYTES_PER_S[,LATENCY][,shared]`, of a link that is only simulated, and so may be a shared one.
CLI::Option* add_assumed_link_option(CLI::App& app, std::optional<Link>& link, const std::string& what);

/// The flags that make a policy: `--policy NAME|FILE` and, over what that says, `--threshold`, `--stash`,
/// `--stash-bytes`, `--prefetch`, `--copy-streams` and `--host-memory`.
class PolicyOptions {
 public:
  /// The object must outlive the parse.
  void add_to(CLI::App& app);

  /// The policy; preset `offload` where --policy is not given. `predicted` is there only where a file has it
  /// and no flag changes what the file says. Throws Error (input): no such preset or file, or flags that
  /// contradict the policy.
  PolicyFile resolve() const;

  /// Whether any of the flags is given.
  bool given() const { return !base_.empty() || overrides(); }

 private:
  bool overrides() const;
  void refuse_contradictions(const Policy& base) const;

  std::string base_;
  std::optional<Bytes> threshold_, stash_bytes_, prefetch_, host_memory_, disk_memory_, disk_buffer_;
  std::optional<std::int64_t> stash_;
  std::optional<int> copy_streams_;
};

// --- implementation ---

/// Throws Error that lists `accepted` and names the nearest.
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
