#pragma once

#include <string>

namespace offprof {

enum class OptimizerKind {
  kNone,
  kSgd,
  kAdamW,
  kAdafactor  ///< without a first moment; the second one is kept by rows and columns
};

/// Type of the values that an optimizer keeps of each parameter.
enum class StatePrecision {
  kOfParameter,
  kFloat32,
  kBfloat16,
  kEightBits  ///< blocks of values of one byte, each block with a scale in float32
};

/// Optimizer of a model's run, `--optimizer`.
struct OptimizerSettings {
  OptimizerKind kind = OptimizerKind::kAdamW;
  bool has_momentum = false;                            ///< SGD only
  StatePrecision state = StatePrecision::kOfParameter;  ///< AdamW only
  bool has_master = false;  ///< AdamW only: updates a copy of the parameter in float32

  bool operator==(const OptimizerSettings&) const = default;
};

/// Forms of `--optimizer`, for help and hints.
inline constexpr const char* kOptimizerForms =
    "none, sgd, sgd:momentum, adamw, adamw:state=fp32|bf16|8bit,master=fp32, adafactor";

/// Reads `adamw:state=8bit,master=fp32`. Throws Error (input), with the forms that exist.
OptimizerSettings parse_optimizer(const std::string& text);

}  // namespace offprof
