#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "engine/devices/virtual_gpu/model/kernel_times.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using Json = nlohmann::json;
using Sizes = std::vector<std::int64_t>;

constexpr const char* kHowToRecord =
    "record one on a GPU: torch.profiler.profile(record_shapes=True) around a step, then export_chrome_trace";

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::int64_t> integer_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

/// Returns `External id`, or `External Id` as older profilers write it.
std::optional<std::int64_t> external_id(const Json& args) {
  const auto id = integer_at(args, "External id");
  return id ? id : integer_at(args, "External Id");
}

/// Returns the duration `dur`, which events hold in microseconds; nullopt: there is none. Throws Error
/// (input) if it is negative or longer than a day, which no kernel takes.
std::optional<Nanoseconds> duration_of(const Json& event) {
  constexpr double kNanosecondsPerMicrosecond = 1000, kMostMicroseconds = 24 * 3600e6;
  const auto found = event.find("dur");
  if (found == event.end()) return std::nullopt;
  const double duration = found->is_number() ? found->get<double>() : -1;
  if (duration < 0 || duration > kMostMicroseconds)
    throw input_error(
        fmt::format("its `dur` is {}, which is not a valid kernel duration in microseconds", found->dump()));
  return std::llround(duration * kNanosecondsPerMicrosecond);
}

/// Converts a dtype name of PyTorch's profiler, its C++ type, to the name in traces; empty: none, or a list.
std::string_view dtype_of(const std::string& profiler_name) {
  static const std::unordered_map<std::string, std::string_view> kNames = {
      {"float", "float32"},       {"double", "float64"},
      {"c10::Half", "float16"},   {"c10::BFloat16", "bfloat16"},
      {"long", "int64"},          {"long int", "int64"},
      {"int", "int32"},           {"short", "int16"},
      {"short int", "int16"},     {"signed char", "int8"},
      {"unsigned char", "uint8"}, {"bool", "bool"}};
  const auto found = kNames.find(profiler_name);
  return found == kNames.end() ? "" : found->second;
}

bool is_integers(const Json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const Json& element) { return element.is_number_integer(); });
}

/// The tensors of an operator event, and the key that they form.
class RecordedOperands {
 public:
  explicit RecordedOperands(const Json& args) {
    const auto dims = args.find("Input Dims");
    const auto types = args.find("Input type");
    if (dims == args.end() || !dims->is_array()) return;
    recorded_ = true;
    for (std::size_t i = 0; i < dims->size(); ++i) {
      const bool typed =
          types != args.end() && types->is_array() && i < types->size() && (*types)[i].is_string();
      add((*dims)[i], typed ? dtype_of((*types)[i].get<std::string>()) : "");
    }
  }

  /// Returns true if the trace has shapes at all.
  bool recorded() const { return recorded_; }

  std::string key(const std::string& name) const {
    std::vector<OperandKey> keys;
    for (std::size_t i = 0; i < sizes_.size(); ++i) keys.push_back({dtypes_[i], sizes_[i]});
    return op_key(name, keys);
  }

 private:
  void add(const Json& dims, std::string_view dtype) {
    if (is_integers(dims)) {
      sizes_.push_back(dims.get<Sizes>());
      dtypes_.push_back(dtype);
    } else if (dims.is_array()) {
      for (const Json& element : dims) add(element, "");
    }
  }

  bool recorded_ = false;
  std::vector<Sizes> sizes_;
  std::vector<std::string_view> dtypes_;
};

/// Gathers a trace's events one by one. Kernels and the operators that launched them may come in any order.
class Gatherer {
 public:
  /// `path` names the trace in errors.
  explicit Gatherer(const std::string& path) : path_(path) {}

  void take(const Json& event) {
    try {
      take_known(event);
    } catch (const Error& error) {
      throw input_error(
          fmt::format("'{}': event {}, \"{}\": {}", path_, taken_ + 1, text_at(event, "name"), error.what()),
          kHowToRecord);
    }
    ++taken_;
  }

  bool has_kernels() const { return kernels_ > 0; }

  KernelTimes finish() {
    for (const auto& [correlation, duration] : unowned_) {
      const auto launch = launches_.find(correlation);
      if (launch != launches_.end()) op_durations_[launch->second] += duration;
    }
    for (const auto& [id, duration] : op_durations_) {
      const auto op = ops_.find(id);
      if (op != ops_.end()) times_.add_op(op->second, duration);
    }
    return std::move(times_);
  }

 private:
  void take_known(const Json& event) {
    const std::string category = text_at(event, "cat");
    const auto args = event.find("args");
    if (args == event.end() || !args->is_object()) return;
    if (category == "kernel") take_kernel(event, *args);
    if (category == "cpu_op") take_op(event, *args);
    if (category == "cuda_runtime" || category == "cuda_driver") take_launch(*args);
  }

  void take_kernel(const Json& event, const Json& args) {
    const auto duration = duration_of(event);
    if (!duration) return;
    ++kernels_;
    total_ += *duration;
    if (total_ > kLongest) throw input_error("the kernels take more than 30 years in total");
    add_launch_sizes(text_at(event, "name"), args, *duration);
    if (const auto id = external_id(args)) {
      op_durations_[*id] += *duration;
    } else if (const auto correlation = integer_at(args, "correlation")) {
      unowned_.emplace_back(*correlation, *duration);
    }
  }

  void add_launch_sizes(const std::string& name, const Json& args, Nanoseconds duration) {
    std::uint32_t sizes[2][3];
    const char* keys[2] = {"grid", "block"};
    for (int i = 0; i < 2; ++i) {
      const auto found = args.find(keys[i]);
      if (found == args.end() || !is_integers(*found) || found->size() != std::size(sizes[i])) return;
      std::ranges::copy(found->get<std::vector<std::uint32_t>>(), sizes[i]);
    }
    times_.add_kernel(kernel_key(name, sizes[0], sizes[1]), duration);
  }

  void take_op(const Json& event, const Json& args) {
    const auto id = external_id(args);
    const RecordedOperands operands(args);
    if (id && operands.recorded()) ops_[*id] = operands.key(text_at(event, "name"));
  }

  void take_launch(const Json& args) {
    const auto correlation = integer_at(args, "correlation");
    const auto id = external_id(args);
    if (correlation && id) launches_[*correlation] = *id;
  }

  /// Limit that keeps sums over kernels within 64 bits.
  static constexpr Nanoseconds kLongest = 1'000'000'000'000'000'000;

  const std::string& path_;
  KernelTimes times_;
  Nanoseconds total_ = 0;  ///< sum over all kernels
  std::size_t taken_ = 0;  ///< number of events, of any kind
  std::size_t kernels_ = 0;
  std::unordered_map<std::int64_t, std::string> ops_;           ///< keys, by external id
  std::unordered_map<std::int64_t, Nanoseconds> op_durations_;  ///< by external id
  std::unordered_map<std::int64_t, std::int64_t> launches_;     ///< correlation to external id
  std::vector<std::pair<std::int64_t, Nanoseconds>> unowned_;   ///< kernels, by correlation
};

/// Limit on nesting, since the parser recurses into values. Events have four levels.
constexpr int kMostDepth = 200;

Error no_trace(const std::string& path, const std::string& why) {
  return input_error(fmt::format("'{}' is not a trace: {}", path, why), kHowToRecord);
}

/// Parses the trace and passes each event on before it reads the next, so that a long trace takes little
/// memory. Returns the document without the events.
Json parse_events(const std::string& text, const std::string& path, Gatherer& gatherer) {
  int event_depth = 2;  // the document, its `traceEvents`, an event
  bool in_events = false;
  const auto on_value = [&](int depth, Json::parse_event_t kind, Json& value) {
    if (depth > kMostDepth) throw no_trace(path, "it is nested too deeply");
    if (kind == Json::parse_event_t::array_start && depth == 0) {
      event_depth = 1;  // the document is the list of events
      in_events = true;
    }
    if (kind == Json::parse_event_t::key && depth == 1)
      in_events = event_depth == 1 || value == "traceEvents";
    if (!in_events || kind != Json::parse_event_t::object_end || depth != event_depth) return true;
    gatherer.take(value);
    return false;
  };
  try {
    return Json::parse(text, on_value);
  } catch (const Json::exception& error) {
    throw no_trace(path, fmt::format("it is not JSON ({})", error.what()));
  }
}

/// Returns true if offprof wrote the trace of a simulation or of a run on a virtual device; both traces are
/// marked.
bool is_simulated(const Json& document) {
  if (!document.is_object()) return false;
  const Json environment = document.value("environment", Json::object());
  return document.value("simulated", Json(false)) == true ||
         (environment.is_object() && environment.value("times_are_modelled", Json(false)) == true);
}

void check_has_events(const Json& document, const std::string& path) {
  if (document.is_array()) return;
  if (!document.is_object() || !document.contains("traceEvents"))
    throw no_trace(path, "it has no `traceEvents`");
  if (!document["traceEvents"].is_array()) throw no_trace(path, "its `traceEvents` is not a list of events");
}

}  // namespace

KernelTimes read_kernel_times(const std::string& path) {
  return parse_kernel_times(read_file(path), path);
}

KernelTimes parse_kernel_times(const std::string& text, const std::string& name) {
  if (text.empty()) throw input_error(fmt::format("'{}' is empty", name), kHowToRecord);
  Gatherer gatherer(name);
  const Json document = parse_events(text, name, gatherer);
  check_has_events(document, name);
  if (is_simulated(document))
    throw input_error(fmt::format("the kernel times in '{}' were simulated, not measured", name),
                      kHowToRecord);
  if (!gatherer.has_kernels())
    throw input_error(fmt::format("'{}' has no kernels: nothing ran on a GPU during its recording", name),
                      kHowToRecord);
  return gatherer.finish();
}

}  // namespace offprof
