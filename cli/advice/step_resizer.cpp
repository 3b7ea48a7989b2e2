#include "cli/advice/step_resizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "cli/tables/step_size.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

std::optional<std::int64_t> read_size(std::string_view text) {
  std::int64_t size = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), size);
  if (failure != std::errc() || end != text.data() + text.size() || size < 1) return std::nullopt;
  return size;
}

/// Word of a command line, and the place in it where the size begins.
struct SizeWord {
  std::size_t word = 0;
  std::size_t begin = 0;
};

/// Finds the size after `--`: `--batch-size 8`, `--batch-size=8`, `batch_size=8`. The last one counts.
std::optional<SizeWord> find_size(const std::vector<std::string>& words, const std::string& argument) {
  std::optional<SizeWord> found;
  const auto arguments = std::ranges::find(words, "--") - words.begin();
  for (std::size_t i = static_cast<std::size_t>(arguments) + 1; i < words.size(); ++i) {
    if (words[i] == argument && i + 1 < words.size())
      found = {i + 1, 0};
    else if (words[i].starts_with(argument + "="))
      found = {i, argument.size() + 1};
  }
  return found;
}

/// Input spec taken apart: `int64[`, its dimensions, `]<512`.
struct ParsedSpec {
  std::string before{}, after{};
  std::vector<std::int64_t> dimensions{};

  std::string text() const { return fmt::format("{}{}{}", before, fmt::join(dimensions, ","), after); }
};

ParsedSpec parse(const std::string& spec) {
  ParsedSpec parsed{.before = spec, .dimensions = dimensions_of(spec)};
  if (parsed.dimensions.empty()) return parsed;
  const std::size_t open = spec.find('['), close = spec.find(']');
  parsed.before = spec.substr(0, open + 1);
  parsed.after = spec.substr(close);
  return parsed;
}

bool has_sequence(const std::string& spec) {
  return spec.starts_with("int64[") && dimensions_of(spec).size() == 2;
}

}  // namespace

StepResizer::StepResizer(Dimension dimension, std::string argument)
    : dimension_(dimension), argument_(std::move(argument)) {}

std::int64_t StepResizer::present_size(const std::vector<std::string>& words, const Trace& plain) const {
  if (!argument_.empty()) {
    const auto found = find_size(words, argument_);
    const auto size =
        found ? read_size(std::string_view(words[found->word]).substr(found->begin)) : std::nullopt;
    if (size) return *size;
    throw input_error(fmt::format("the script's arguments have no {} with a whole number", argument_),
                      fmt::format("Give its present value after `--`: -- {} 8", argument_));
  }
  for (const std::string& input : plain.settings.inputs) {
    const std::vector<std::int64_t> dimensions = dimensions_of(input);
    if (dimension_ == Dimension::kBatch && !dimensions.empty()) return dimensions.front();
    if (dimension_ == Dimension::kSequence && has_sequence(input)) return dimensions.back();
  }
  throw input_error(
      dimension_ == Dimension::kBatch
          ? "the model has no input with dimensions, so that its batch is not known"
          : "the model has no input of type int64 with two dimensions, so that it has no sequence");
}

std::vector<std::string> StepResizer::resized(std::vector<std::string> words, const Trace& plain,
                                              std::int64_t size) const {
  const std::int64_t present = present_size(words, plain);
  if (!argument_.empty()) {
    const SizeWord found = *find_size(words, argument_);
    words[found.word] = words[found.word].substr(0, found.begin) + std::to_string(size);
    return words;
  }
  for (auto input = std::ranges::find(words, "--input"); input != words.end();
       input = std::ranges::find(words, "--input"))
    words.erase(input, input + 2);
  std::vector<std::string> inputs;
  for (const std::string& input : plain.settings.inputs) {
    ParsedSpec spec = parse(input);
    for (std::size_t i = 0; i < spec.dimensions.size(); ++i)
      if ((i == 0) == (dimension_ == Dimension::kBatch) && spec.dimensions[i] == present)
        spec.dimensions[i] = size;
    inputs.insert(inputs.end(), {"--input", spec.text()});
  }
  words.insert(std::ranges::find(words, "--"), inputs.begin(), inputs.end());
  return words;
}

}  // namespace offprof
