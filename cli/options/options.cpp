#include "cli/options/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>

#include "profiler/plugin/optimizer_settings.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"

namespace offprof {
namespace {

/// Returns `--output` for `-o,--output`.
std::string long_name(const std::string& names) {
  const std::size_t comma = names.rfind(',');
  return comma == std::string::npos ? names : names.substr(comma + 1);
}

template <class Number>
Number parse_whole(const std::string& text, Number min, Number max, std::string_view is_what = "not") {
  Number value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc() && result.ptr == end && value >= min && value <= max) return value;
  const bool bounded = max != std::numeric_limits<Number>::max();
  const std::string range =
      bounded ? fmt::format("from {} to {}", min, max) : fmt::format("of at least {}", min);
  throw input_error(fmt::format("'{}' is {} a whole number {}", text, is_what, range));
}

constexpr auto kDigits = "0123456789";

/// Throws Error (input) if `text` consists of digits only and the number is so small that the unit was
/// probably forgotten. `of` is the noun that the number counts; `example` is the same number with a unit.
void refuse_missing_unit(const std::string& text, double value, const char* of, const std::string& example) {
  const bool is_bare = !text.empty() && text.find_first_not_of(kDigits) == std::string::npos;
  if (!is_bare || value == 0 || value >= static_cast<double>(kLeastBareAmount)) return;
  throw input_error(fmt::format("'{}' means {} {}, which is probably a mistake", text, text, of),
                    fmt::format("Give it a unit, as in {}.", example));
}

CLI::Option* add_size_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                             const std::string& what, Bytes min, Bytes (*parse)(const std::string&)) {
  const auto read = [&target, min, parse](const std::string& text) {
    const Bytes bytes = parse(text);
    if (bytes < min) throw input_error(fmt::format("'{}' is less than {}", text, format_bytes(min)));
    target = bytes;
  };
  return add_parsed_option(app, names, "BYTES", read, what);
}

}  // namespace

Bytes parse_capacity(const std::string& text) {
  const Bytes bytes = parse_bytes(text);
  refuse_missing_unit(text, static_cast<double>(bytes), "bytes", text + "GiB or " + text + "MiB");
  return bytes;
}

double parse_bandwidth(const std::string& text) {
  constexpr std::string_view kPerSecond = "/s";
  const bool has_time = text.find('/') != std::string::npos;
  const double rate = parse_rate(has_time ? text : text + std::string(kPerSecond));
  const std::string amount = text.ends_with(kPerSecond) ? text.substr(0, text.size() - 2) : text;
  refuse_missing_unit(amount, rate, "bytes per second", amount + "GB/s or " + amount + "MB/s");
  return rate;
}

void read_for_option(const std::string& option, const std::function<void()>& read) {
  try {
    read();
  } catch (const Error& error) {
    throw Error(error.kind(), fmt::format("{}: {}", option, error.what()), error.hint());
  }
}

CLI::Option* add_parsed_option(CLI::App& app, const std::string& names, const std::string& type,
                               std::function<void(const std::string&)> read, const std::string& what) {
  const auto read_named = [name = long_name(names), read = std::move(read)](const std::string& text) {
    read_for_option(name, [&] { read(text); });
  };
  return app.add_option_function<std::string>(names, read_named, what)->type_name(type);
}

CLI::Option* add_optimizer_option(CLI::App& app, std::string& target) {
  const auto read = [&target](const std::string& text) {
    parse_optimizer(text);
    target = text;
  };
  return add_parsed_option(
      app, "--optimizer", "OPTIMIZER", read,
      fmt::format("Optimizer, whose states take memory too: {} (default adamw, with states "
                  "of the parameters' type)",
                  kOptimizerForms));
}

CLI::Option* add_bytes_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                              const std::string& what, Bytes min) {
  const auto parse = [](const std::string& text) { return parse_bytes(text); };
  return add_size_option(app, names, target, what, min, parse);
}

CLI::Option* add_capacity_option(CLI::App& app, const std::string& names, std::optional<Bytes>& target,
                                 const std::string& what, Bytes min) {
  return add_size_option(app, names, target, what, min, parse_capacity);
}

CLI::Option* add_count_option(CLI::App& app, const std::string& names, std::function<void(std::int64_t)> take,
                              std::int64_t min, std::int64_t max, const std::string& what) {
  const auto read = [take = std::move(take), min, max](const std::string& text) {
    take(parse_whole(text, min, max));
  };
  return add_parsed_option(app, names, "N", read, what);
}

std::string name_or_absolute_path(const std::string& text, const std::vector<std::string>& names) {
  return std::ranges::find(names, text) != names.end() ? text : std::filesystem::absolute(text).string();
}

CLI::Option* add_assume_option(CLI::App& app, bool& balanced_experts) {
  return add_choice_option<bool>(
      app, "--assume", balanced_experts, {{"balanced-experts", true}},
      "What a virtual GPU assumes where a program reads values that kernels compute: the experts of a "
      "mixture get equally many tokens (default: zeros are read)");
}

CLI::Option* add_seed_option(CLI::App& app, std::uint64_t& target) {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  const auto read = [&target](const std::string& text) {
    target = parse_whole<std::uint64_t>(text, 0, kMost);
  };
  return add_parsed_option(app, "--seed", "N", read, "Seed of the random numbers (default 0)");
}

CLI::Option* add_count_or_auto_option(CLI::App& app, const std::string& names,
                                      std::function<void(std::optional<std::int64_t>)> take, std::int64_t min,
                                      std::int64_t max, const std::string& what) {
  const auto read = [take = std::move(take), min, max](const std::string& text) {
    if (text == "auto") return take(std::nullopt);
    take(parse_whole(text, min, max, "neither auto nor"));
  };
  return add_parsed_option(app, names, "N|auto", read, what);
}

void throw_not_among(const std::string& text, const std::vector<std::string>& accepted) {
  throw input_error(fmt::format("'{}' is not one of: {}", text, fmt::join(accepted, ", ")),
                    did_you_mean(text, accepted));
}

CLI::Option* add_trace_option(CLI::App& app, std::string& path, const std::string& what) {
  return app.add_option("-t,--trace", path, what)->type_name("FILE")->required();
}

void TraceArgument::add_to(CLI::App& app, const std::string& what) {
  const auto take_into = [](std::vector<std::string>& paths) {
    return [&paths](const std::string& path) { paths = {path}; };
  };
  app.add_option_function<std::string>("TRACE", take_into(arguments_), what);
  app.add_option_function<std::string>("-t,--trace", take_into(named_), "Same as TRACE, given by name")
      ->type_name("FILE");
}

void TraceArgument::add_several_to(CLI::App& app, const std::string& what) {
  app.add_option("TRACE", arguments_, what);
  app.add_option("-t,--trace", named_, "Same as TRACE, given by name; repeat --trace for several traces")
      ->type_name("FILE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

const std::vector<std::string>& TraceArgument::paths() const {
  if (arguments_.empty() && named_.empty())
    throw input_error("no trace is given", "Name the file that `offprof run -o t.json` wrote: t.json");
  if (!arguments_.empty() && !named_.empty() && arguments_ != named_)
    throw input_error(fmt::format("the argument is {}, but --trace is {}", fmt::join(arguments_, " "),
                                  fmt::join(named_, " ")),
                      "Give all traces either as arguments or with --trace.");
  return arguments_.empty() ? named_ : arguments_;
}

CLI::Option* add_output_option(CLI::App& app, std::string& path, const std::string& what) {
  return app.add_option("-o,--output", path, what)->type_name("FILE");
}

void add_common_options(CLI::App& app, CommonOptions& options, const FormatChoices& formats) {
  const std::string group = "Common options";
  add_choice_option<ReportFormat>(app, "--format", options.format, formats,
                                  "Format of the printed result (default text)")
      ->group(group);
  add_choice_option<ColorWhen>(
      app, "--color", options.color,
      {{"auto", ColorWhen::kAuto}, {"always", ColorWhen::kAlways}, {"never", ColorWhen::kNever}},
      "Use of colours; auto: on a terminal, unless NO_COLOR is set")
      ->group(group);
  app.add_flag("-q,--quiet", options.quiet, "Print no notes and no progress line")->group(group);
  app.add_flag("-v,--verbose", options.verbose, "Print more details")->group(group);
}

Link parse_link(const std::string& text) {
  const std::size_t comma = text.find(',');
  LinkDirection direction{.bytes_per_second = parse_bandwidth(text.substr(0, comma))};
  if (comma != std::string::npos) direction.latency_ns = parse_duration(text.substr(comma + 1));
  return {direction, direction, 0};
}

Link parse_assumed_link(const std::string& text) {
  constexpr std::string_view kShared = ",shared";
  if (!text.ends_with(kShared)) return parse_link(text);
  Link link = parse_link(text.substr(0, text.size() - kShared.size()));
  link.is_shared = true;
  return link;
}

double parse_share(const std::string& text, const std::string& what) {
  double value = 0;
  const bool percent = text.ends_with('%');
  const char* end = text.data() + text.size() - (percent ? 1 : 0);
  const auto [parsed, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc{} || parsed != end || !(value >= 0) || !std::isfinite(value))
    throw input_error("'" + text + "' is not a valid " + what, "Give a percentage, as in 5%");
  return percent ? value / 100 : value;
}

double parse_percentage(const std::string& text, const std::string& what, double most) {
  const double share = parse_share(text, what);
  if (!text.ends_with('%'))
    throw input_error(fmt::format("'{}' can be read as {}% and as {:g}%", text, text, 100 * share),
                      "Write the percent sign, as in 5%");
  if (share > most) throw input_error(fmt::format("'{}' is a {} of more than {:g}%", text, what, 100 * most));
  return share;
}

CLI::Option* add_share_option(CLI::App& app, const std::string& names, double& target,
                              const std::string& what) {
  return add_parsed_option(
      app, names, "SHARE", [&target](const std::string& text) { target = parse_share(text, "share"); }, what);
}

Link link_to_assume(const std::optional<Link>& given, const Link& of_trace) {
  if (given) {
    Link link = {given->d2h, given->h2d, of_trace.launch_ns, given->is_shared};
    link.bidirectional_bytes_per_second = of_trace.bidirectional_of(given->d2h, given->h2d);
    link.d2h.start_ns = of_trace.d2h.start_ns;  // the start time belongs to the streams, not to the link
    link.h2d.start_ns = of_trace.h2d.start_ns;
    link.d2h.compute_ns_per_byte = of_trace.d2h.compute_ns_per_byte;  // to the device's memory
    link.h2d.compute_ns_per_byte = of_trace.h2d.compute_ns_per_byte;
    link.disk = of_trace.disk;
    return link;
  }
  if (of_trace.d2h.bytes_per_second > 0 && of_trace.h2d.bytes_per_second > 0) return of_trace;
  throw input_error("the trace does not contain the speed of its link", "Give it: --link 25GB/s,10us");
}

CLI::Option* add_assumed_link_option(CLI::App& app, std::optional<Link>& link, const std::string& what) {
  return add_parsed_option(
      app, "--link", "BYTES_PER_S[,LATENCY][,shared]",
      [&link](const std::string& text) { link = parse_assumed_link(text); }, what);
}

CLI::Option* add_link_option(CLI::App& app, std::optional<Link>& link, const std::string& what) {
  return add_parsed_option(
      app, "--link", "BYTES_PER_S[,LATENCY]", [&link](const std::string& text) { link = parse_link(text); },
      what);
}

void PolicyOptions::add_to(CLI::App& app, std::string preset) {
  preset_ = std::move(preset);
  const std::string group = "Policy";
  app.add_option(
         "--policy", base_,
         fmt::format(
             "Policy: {}, or a policy.json of `offprof tune` (default {})", fmt::join(preset_names(), ", "),
             preset_ == "offload" ? preset_ : preset_ + "; offload if another of these flags is given"))
      ->type_name("PRESET|FILE")
      ->group(group);
  add_bytes_option(app, "--threshold", threshold_,
                   "Offload saved tensors of at least this size; 0: all that can be offloaded")
      ->group(group);
  add_count_option(app, "--stash", stash_, 0, std::numeric_limits<std::int64_t>::max(),
                   "Number of offloaded tensors that keep their device copy; 0: none")
      ->group(group);
  add_bytes_option(app, "--stash-bytes", stash_bytes_,
                   "Bytes of offloaded tensors that keep their device copy")
      ->group(group);
  add_bytes_option(app, "--prefetch", prefetch_,
                   "Prefetch window: reload up to this many bytes ahead of use; 0: on demand")
      ->group(group);
  add_count_option(app, "--copy-streams", copy_streams_, 1, 2,
                   "Number of copy streams; 2: one per direction; 1: copies of both directions share one")
      ->group(group);
  add_capacity_option(app, "--host-memory", host_memory_,
                      "Limit of host memory for offloaded tensors; tensors beyond it stay on the device")
      ->group(group);
  add_capacity_option(
      app, "--disk-memory", disk_memory_,
      "Limit of disk space for `disk` tensors; tensors beyond it go to host memory or stay on the "
      "device")
      ->group(group);
  add_capacity_option(app, "--disk-buffer", disk_buffer_,
                      "Host memory that buffers tensors on their way to and from the disk (default 256 MiB)")
      ->group(group);
}

bool PolicyOptions::overrides() const {
  return threshold_ || stash_ || stash_bytes_ || prefetch_ || copy_streams_ || host_memory_ || disk_memory_ ||
         disk_buffer_;
}

void PolicyOptions::refuse_contradictions(const Policy& base) const {
  if (!base.threshold_bytes && base.rules.empty() && !threshold_ && overrides()) {
    throw input_error(
        fmt::format("policy '{}' offloads nothing, so the other policy flags have no effect", base.name),
        "Omit them, or use --policy offload.");
  }
  const SchedulerTraits& traits = traits_of(base.scheduler);
  if (traits.has_few_settings &&
      (stash_bytes_ || prefetch_ || copy_streams_ || host_memory_ || disk_memory_ || disk_buffer_)) {
    throw input_error(fmt::format("{} support only --threshold and --stash", traits.rules),
                      "Use --policy offload for the other flags.");
  }
}

PolicyFile PolicyOptions::resolve() const {
  PolicyFile file = load_policy(!base_.empty() ? base_ : overrides() ? "offload" : preset_);
  refuse_contradictions(file.policy);
  if (!overrides()) return file;
  file.predicted.reset();
  Policy& policy = file.policy;
  if (!policy.threshold_bytes && policy.rules.empty()) policy.name = "offload";
  if (threshold_) policy.threshold_bytes = threshold_;
  if (stash_) policy.stash_count = stash_;
  if (stash_bytes_) policy.stash_bytes = stash_bytes_;
  if (prefetch_) policy.prefetch_bytes = *prefetch_;
  if (copy_streams_) policy.copy_streams = *copy_streams_;
  if (host_memory_) policy.host_memory_bytes = host_memory_;
  if (disk_memory_) policy.disk_memory_bytes = disk_memory_;
  if (disk_buffer_) policy.disk_buffer_bytes = *disk_buffer_;
  return file;
}

}  // namespace offprof
