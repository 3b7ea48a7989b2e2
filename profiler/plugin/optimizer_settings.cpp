#include "profiler/plugin/optimizer_settings.h"

#include <fmt/format.h>

#include <map>
#include <string_view>

#include "traces/base/error.h"

namespace offprof {
namespace {

class OptimizerReader {
 public:
  explicit OptimizerReader(const std::string& text) : text_(text) {}

  OptimizerSettings read() {
    static const std::map<std::string_view, OptimizerKind> kKinds = {
        {"none", OptimizerKind::kNone},
        {"sgd", OptimizerKind::kSgd},
        {"adamw", OptimizerKind::kAdamW},
        {"adafactor", OptimizerKind::kAdafactor}};
    const std::string_view all = text_;
    const std::size_t colon = all.find(':');
    const auto kind = kKinds.find(all.substr(0, colon));
    if (kind == kKinds.end()) refuse();
    settings_.kind = kind->second;
    if (colon == std::string_view::npos) return settings_;
    std::string_view rest = all.substr(colon + 1);
    for (std::size_t comma = rest.find(','); comma != std::string_view::npos; comma = rest.find(',')) {
      read_option(rest.substr(0, comma));
      rest.remove_prefix(comma + 1);
    }
    read_option(rest);
    return settings_;
  }

 private:
  [[noreturn]] void refuse() const {
    throw input_error(fmt::format("unknown optimizer '{}'", text_),
                      fmt::format("The optimizers are {}.", kOptimizerForms));
  }

  void read_option(std::string_view option) {
    static const std::map<std::string_view, StatePrecision> kPrecisions = {
        {"fp32", StatePrecision::kFloat32},
        {"bf16", StatePrecision::kBfloat16},
        {"8bit", StatePrecision::kEightBits}};
    constexpr std::string_view kState = "state=";
    const bool is_adamw = settings_.kind == OptimizerKind::kAdamW;
    if (settings_.kind == OptimizerKind::kSgd && option == "momentum" && !settings_.has_momentum) {
      settings_.has_momentum = true;
    } else if (is_adamw && option == "master=fp32" && !settings_.has_master) {
      settings_.has_master = true;
    } else if (is_adamw && option.starts_with(kState) && settings_.state == StatePrecision::kOfParameter) {
      const auto precision = kPrecisions.find(option.substr(kState.size()));
      if (precision == kPrecisions.end()) refuse();
      settings_.state = precision->second;
    } else {
      refuse();
    }
  }

  const std::string& text_;
  OptimizerSettings settings_;
};

}  // namespace

OptimizerSettings parse_optimizer(const std::string& text) {
  return OptimizerReader(text).read();
}

}  // namespace offprof
