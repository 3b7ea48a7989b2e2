#include "engine/transforms/transform_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <optional>

#include "engine/transforms/bits.h"
#include "engine/transforms/cast.h"
#include "engine/transforms/quantize.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using Made = std::shared_ptr<const Transform>;

/// A transform, found by the fixed part of its name. `make` takes the text after the colon, and returns
/// nullptr if it does not accept it.
struct Entry {
  std::string_view name;
  std::string_view parameter;  ///< description of accepted parameters; empty: none
  std::string_view example;    ///< a usual parameter
  Made (*make)(std::string_view parameter);
};

template <typename Kind, auto... arguments>
Made make_plain(std::string_view parameter) {
  return parameter.empty() ? std::make_shared<const Kind>(arguments...) : nullptr;
}

Made make_quantize(std::string_view parameter) {
  if (parameter.empty()) return std::make_shared<const Quantize>();
  std::int64_t block = 0;
  const char* const end = parameter.data() + parameter.size();
  const auto [stopped, error] = std::from_chars(parameter.data(), end, block);
  if (error != std::errc() || stopped != end || block < 1 || block > Quantize::kLargestBlock) return nullptr;
  return std::make_shared<const Quantize>(block);
}

constexpr std::array<Entry, 4> kTable = {{
    {"quantize:uint8", "1 to 65536 elements per block", "128", make_quantize},
    {"cast:bfloat16", "", "", make_plain<Cast, at::kBFloat16>},
    {"cast:float16", "", "", make_plain<Cast, at::kHalf>},
    {"bits", "", "", make_plain<Bits>},
}};

/// Returns the parameter in `name`; nullopt: the name is not the entry's.
std::optional<std::string_view> parameter_of(const Entry& entry, std::string_view name) {
  if (!name.starts_with(entry.name)) return std::nullopt;
  name.remove_prefix(entry.name.size());
  if (name.empty()) return name;
  return name.front() == ':' ? std::optional(name.substr(1)) : std::nullopt;
}

}  // namespace

std::shared_ptr<const Transform> make_transform(const std::string& name) {
  for (const Entry& entry : kTable) {
    const auto parameter = parameter_of(entry, name);
    if (!parameter) continue;
    if (const Made made = entry.make(*parameter)) return made;
    throw input_error(fmt::format("'{}': {} takes {}", name, entry.name,
                                  entry.parameter.empty() ? "no parameter" : entry.parameter));
  }
  throw input_error(
      fmt::format("unknown transform '{}'", name),
      fmt::format("Transforms: {}; placements without a transform: device, host, disk, compress or "
                  "recompute",
                  fmt::join(transform_names(), ", ")));
}

std::vector<std::string> transform_names() {
  std::vector<std::string> names;
  for (const Entry& entry : kTable) {
    names.emplace_back(entry.name);
    if (!entry.example.empty()) names.push_back(fmt::format("{}:{}", entry.name, entry.example));
  }
  return names;
}

}  // namespace offprof
