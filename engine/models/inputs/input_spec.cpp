#include "engine/models/inputs/input_spec.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;

[[noreturn]] void refuse(std::string_view text, const std::string& why) {
  throw input_error("input spec '" + std::string(text) + "': " + why,
                    "write dtype[sizes], such as float32[8,3,96,96], int64[4,128]<512 or bool[4,1]");
}

std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::int64_t parse_count(std::string_view spec, std::string_view digits, const std::string& what) {
  std::int64_t value = 0;
  digits = trim(digits);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || value < 1)
    refuse(spec, "'" + std::string(digits) + "' is not a valid " + what + " (a whole number of at least 1)");
  return value;
}

std::vector<std::int64_t> parse_sizes(std::string_view spec, std::string_view list) {
  std::vector<std::int64_t> sizes;
  std::int64_t elements = 1;
  while (!trim(list).empty()) {
    const std::size_t comma = list.find(',');
    sizes.push_back(parse_count(spec, list.substr(0, comma), "size"));
    if (sizes.back() > kMaxElements / elements) refuse(spec, "more elements than any machine can hold");
    elements *= sizes.back();
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
    if (trim(list).empty()) refuse(spec, "a size is missing after the last comma");
  }
  return sizes;
}

/// Returns the largest value of an integer dtype.
std::int64_t largest(const std::string& dtype) {
  if (dtype == "uint8") return std::numeric_limits<std::uint8_t>::max();
  if (dtype == "int8") return std::numeric_limits<std::int8_t>::max();
  if (dtype == "int16") return std::numeric_limits<std::int16_t>::max();
  if (dtype == "int32") return std::numeric_limits<std::int32_t>::max();
  return std::numeric_limits<std::int64_t>::max();
}

bool is_integer(const std::string& dtype) {
  return dtype.starts_with("int") || dtype.starts_with("uint");
}

}  // namespace

const std::vector<std::string>& input_dtypes() {
  static const std::vector<std::string> kDtypes = {"float32", "float64", "float16", "bfloat16", "int64",
                                                   "int32",   "int16",   "int8",    "uint8",    "bool"};
  return kDtypes;
}

InputSpec parse_input_spec(std::string_view text) {
  const std::string_view spec = trim(text);
  const std::size_t open = spec.find('[');
  const std::size_t close = spec.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    refuse(text, "the sizes in brackets are missing");
  InputSpec result;
  result.dtype = std::string(trim(spec.substr(0, open)));
  const auto& dtypes = input_dtypes();
  if (std::find(dtypes.begin(), dtypes.end(), result.dtype) == dtypes.end()) {
    std::string known;
    for (const std::string& dtype : dtypes) known += (known.empty() ? "" : ", ") + dtype;
    refuse(text, "unknown dtype '" + result.dtype + "'; the dtypes are " + known);
  }
  result.sizes = parse_sizes(text, spec.substr(open + 1, close - open - 1));
  const std::string_view rest = trim(spec.substr(close + 1));
  if (rest.empty()) return result;
  if (rest.front() != '<')
    refuse(text, "'" + std::string(rest) + "' follows the sizes, where a bound (<) or nothing is expected");
  if (!is_integer(result.dtype)) refuse(text, "a bound (<) is only for integers");
  result.below = parse_count(text, rest.substr(1), "bound");
  if (*result.below - 1 > largest(result.dtype))
    refuse(text, "values below " + std::to_string(*result.below) + " do not fit into " + result.dtype);
  return result;
}

std::string to_string(const InputSpec& spec) {
  std::string text = spec.dtype + "[";
  for (std::size_t i = 0; i < spec.sizes.size(); ++i)
    text += (i > 0 ? "," : "") + std::to_string(spec.sizes[i]);
  text += "]";
  if (spec.below) text += "<" + std::to_string(*spec.below);
  return text;
}

std::vector<std::string> split_input_specs(std::string_view text) {
  std::vector<std::string> specs;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    if (!line.empty() && line.front() != '#') specs.emplace_back(line);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return specs;
}

}  // namespace offprof
