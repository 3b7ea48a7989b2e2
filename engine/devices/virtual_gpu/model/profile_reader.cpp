#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "engine/devices/virtual_gpu/model/json_lines.h"
#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/devices/virtual_gpu/model/profile_format.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"
#include "traces/io/json_access.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

/// A key of the file, by its path, and the function that stores its value.
struct Field {
  std::string path;
  std::function<void(const JsonValue&, DeviceProfile&)> read;
};

// Limits beyond any real GPU, so that no sum over its work exceeds 64 bits.
constexpr double kLeastRate = 1, kMostRate = 1e21;
constexpr double kLeastShare = 1e-4;
constexpr double kLeastElements = 1e-3, kMostElements = 1e3;
constexpr Bytes kMostBytes = Bytes{1} << 50;

double positive(const JsonValue& value) {
  const double amount = value.as_amount();
  if (amount == 0) value.fail("0 is not a positive number");
  return amount;
}

/// Reads a rate in bytes or operations per second.
double rate(const JsonValue& value) {
  const double amount = positive(value);
  if (amount < kLeastRate || amount > kMostRate)
    value.fail(fmt::format("{} is not between {} and {}", amount, kLeastRate, kMostRate));
  return amount;
}

double share(const JsonValue& value) {
  const double amount = positive(value);
  if (amount > 1) value.fail(fmt::format("{} is more than 1, but it is a share of the peak", amount));
  if (amount < kLeastShare) value.fail(fmt::format("{} is less than {}", amount, kLeastShare));
  return amount;
}

double elements_per_cycle(const JsonValue& value) {
  const double amount = positive(value);
  if (amount < kLeastElements || amount > kMostElements)
    value.fail(fmt::format("{} is not between {} and {}", amount, kLeastElements, kMostElements));
  return amount;
}

Field count(std::string path, int DeviceProfile::*member, int low = 1) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = static_cast<int>(value.as_integer(low, std::numeric_limits<int>::max()));
          }};
}

Field bytes(std::string path, Bytes DeviceProfile::*member) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = value.as_integer(1, kMostBytes);
          }};
}

Field time(std::string path, Nanoseconds DeviceProfile::*member) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = value.as_integer(1, kLongestMeasured);
          }};
}

Field flops(const std::string& dtype) {
  return {"flops_per_second." + dtype, [=](const JsonValue& value, DeviceProfile& profile) {
            profile.flops_per_second[dtype] = rate(value);
          }};
}

Field efficiency(std::string path, double DeviceProfile::*member) {
  return {std::move(path),
          [=](const JsonValue& value, DeviceProfile& profile) { profile.*member = share(value); }};
}

Field name(std::string path, std::string DeviceProfile::*member) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = value.as_string();
            if ((profile.*member).empty()) value.fail("it is empty");
          }};
}

/// Checks the source of a group's figures. It is for people who read the file and is not stored.
Field source(const std::string& group) {
  return {"sources." + group, [](const JsonValue& value, DeviceProfile&) {
            if (value.as_string().empty()) value.fail("it is empty; name the source of the figures");
          }};
}

std::vector<Field> link_fields(const std::string& direction, LinkDirection Link::*member) {
  return {{"link." + direction + ".bytes_per_second",
           [=](const JsonValue& value, DeviceProfile& profile) {
             (profile.link.*member).bytes_per_second = rate(value);
           }},
          {"link." + direction + ".latency_ns", [=](const JsonValue& value, DeviceProfile& profile) {
             (profile.link.*member).latency_ns = value.as_integer(1, kLongestMeasured);
           }}};
}

std::vector<Field> memory_fields() {
  return {
      bytes("memory.bytes", &DeviceProfile::memory_bytes),
      count("memory.bus_bits", &DeviceProfile::memory_bus_bits),
      count("memory.clock_khz", &DeviceProfile::memory_clock_khz),
      {"memory.bytes_per_second",
       [](const JsonValue& value, DeviceProfile& profile) { profile.memory_bytes_per_second = rate(value); }},
      bytes("memory.l2_cache_bytes", &DeviceProfile::l2_cache_bytes),
      time("memory.latency_ns", &DeviceProfile::memory_latency_ns)};
}

std::vector<Field> multiprocessor_fields() {
  const std::string group = "multiprocessors.";
  return {count(group + "count", &DeviceProfile::multiprocessors),
          count(group + "compute_capability_major", &DeviceProfile::compute_capability_major),
          count(group + "compute_capability_minor", &DeviceProfile::compute_capability_minor, 0),
          count(group + "max_threads", &DeviceProfile::max_threads_per_multiprocessor),
          count(group + "max_blocks", &DeviceProfile::max_blocks_per_multiprocessor),
          count(group + "registers", &DeviceProfile::registers_per_multiprocessor),
          count(group + "clock_khz", &DeviceProfile::clock_khz),
          bytes(group + "shared_memory_bytes", &DeviceProfile::shared_memory_per_multiprocessor_bytes),
          bytes(group + "shared_memory_per_block_bytes", &DeviceProfile::shared_memory_per_block_bytes),
          bytes(group + "shared_memory_per_block_optin_bytes",
                &DeviceProfile::shared_memory_per_block_optin_bytes)};
}

std::vector<Field> all_fields() {
  std::vector<Field> fields = {{"schema", [](const JsonValue&, DeviceProfile&) {}},
                               name("name", &DeviceProfile::name),
                               name("device_name", &DeviceProfile::device_name)};
  const auto add = [&](const std::vector<Field>& more) {
    fields.insert(fields.end(), more.begin(), more.end());
  };
  add(memory_fields());
  add(multiprocessor_fields());
  for (const char* dtype : kProfileDtypes) add({flops(dtype)});
  add({efficiency("efficiency.compute", &DeviceProfile::compute_efficiency),
       efficiency("efficiency.memory", &DeviceProfile::memory_efficiency),
       efficiency("efficiency.attention", &DeviceProfile::attention_efficiency),
       time("kernels.kernel_ns", &DeviceProfile::kernel_ns),
       time("kernels.launch_ns", &DeviceProfile::launch_ns),
       {"kernels.elements_per_cycle", [](const JsonValue& value, DeviceProfile& profile) {
          profile.elements_per_cycle = elements_per_cycle(value);
        }}});
  add(link_fields("d2h", &Link::d2h));
  add(link_fields("h2d", &Link::h2d));
  for (const char* group : {"memory", "multiprocessors", "flops_per_second", "efficiency", "kernels", "link"})
    add({source(group)});
  return fields;
}

std::string parent_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string last_of(const std::string& path) {
  return path.substr(path.rfind('.') + 1);
}

/// Reads the text of one file by the table of fields.
class Reader {
 public:
  Reader(const std::string& text, const std::string& where)
      : where_(where), document_(parse_document(text, where)), fields_(all_fields()) {
    check_schema(document_, kProfileSchema, where);
    lines_ = lines_of_keys(text, where);
  }

  DeviceProfile read() const {
    for (const auto& [path, line] : lines_) refuse_unknown(path);
    DeviceProfile profile;
    for (const Field& field : fields_) field.read(value_at(field.path), profile);
    return profile;
  }

 private:
  std::string place(const std::string& path) const {
    const auto line = lines_.find(path);
    const std::string text = line == lines_.end() ? "" : fmt::format(": line {}", line->second);
    return fmt::format("'{}'{}", where_, text);
  }

  /// Rejects a path that is neither a field nor a group of fields.
  void refuse_unknown(const std::string& path) const {
    std::vector<std::string> known;
    for (const Field& field : fields_) {
      if (field.path == path || field.path.starts_with(path + ".")) return;
      std::string rest = field.path;
      while (parent_of(rest) != parent_of(path) && !rest.empty()) rest = parent_of(rest);
      if (!rest.empty() && std::ranges::find(known, last_of(rest)) == known.end())
        known.push_back(last_of(rest));
    }
    const std::string guess = did_you_mean(last_of(path), known);
    throw input_error(
        fmt::format("{}: a GPU profile has no key '{}'", place(path), path),
        !guess.empty() || known.empty() ? guess : fmt::format("Known: {}.", fmt::join(known, ", ")));
  }

  JsonValue value_at(const std::string& path) const {
    const std::string parent = parent_of(path);
    const JsonValue within = parent.empty() ? JsonValue(document_, place("")) : value_at(parent);
    if (!within.json().is_object()) within.fail("expected an object of figures");
    const auto found = within.json().find(last_of(path));
    if (found == within.json().end()) {
      throw input_error(fmt::format("{}: '{}' is missing", place(parent), path),
                        "docs/reference/gpu-profiles.md describes every key");
    }
    return {*found, fmt::format("{}: {}", place(path), path)};
  }

  std::string where_;
  nlohmann::json document_;
  std::vector<Field> fields_;
  std::map<std::string, int> lines_;
};

}  // namespace

DeviceProfile parse_profile(const std::string& text, const std::string& where) {
  return Reader(text, where).read();
}

}  // namespace offprof
