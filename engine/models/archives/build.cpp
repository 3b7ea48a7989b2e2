#include "engine/models/archives/build.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/script.h>
#include <unistd.h>

#include <cmath>
#include <memory>
#include <random>
#include <sstream>
#include <utility>

#include "engine/models/zoo/blueprint.h"
#include "traces/base/error.h"
#include "traces/base/units.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using torch::jit::Module;

at::ScalarType scalar_type(const std::string& dtype) {
  if (dtype == "bfloat16") return at::kBFloat16;
  return dtype == "float16" ? at::kHalf : at::kFloat;
}

// Makes tensors from one stream of random bits. Does not use std::uniform_real_distribution or LibTorch's
// generator, whose numbers differ between libraries and instruction sets.
class ParameterSource {
 public:
  ParameterSource(std::uint64_t seed, const ZooWeights& weights)
      : bits_(seed), dtype_(scalar_type(weights.dtype)), meta(weights.meta) {}

  at::Tensor make(const TensorBlueprint& blueprint) {
    if (meta) return at::full({1}, blueprint.mean, dtype_).expand(blueprint.shape);
    return filled(blueprint).to(dtype_);
  }

 private:
  at::Tensor filled(const TensorBlueprint& blueprint) {
    at::Tensor tensor = torch::full(blueprint.shape, blueprint.mean, torch::kFloat32);
    if (blueprint.deviation == 0) return tensor;
    const double half_width = blueprint.deviation * std::sqrt(3.0);
    float* values = tensor.data_ptr<float>();
    for (std::int64_t i = 0; i < tensor.numel(); ++i) {
      values[i] = static_cast<float>(blueprint.mean + half_width * from_minus_one_to_one());
    }
    return tensor;
  }

  double from_minus_one_to_one() {
    constexpr int kDigits = 24;  // digits of a float
    const auto step = static_cast<double>(bits_() >> (64 - kDigits));
    return (step + 0.5) * std::ldexp(1.0, 1 - kDigits) - 1.0;
  }

  std::mt19937_64 bits_;
  at::ScalarType dtype_;
  bool meta;
};

// Builds modules from blueprints. Their classes share one compilation unit.
class ModuleMaker {
 public:
  ModuleMaker(std::uint64_t seed, const ZooWeights& weights)
      : unit_(std::make_shared<torch::jit::CompilationUnit>()), weights_(seed, weights) {}

  Module make(const ModuleBlueprint& blueprint) {
    Module module(blueprint.type, unit_, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), true);
    add_tensors(module, blueprint);
    for (const auto& [name, value] : blueprint.integers)
      module.register_attribute(name, c10::IntType::get(), value);
    for (const auto& [name, value] : blueprint.numbers)
      module.register_attribute(name, c10::FloatType::get(), value);
    for (const ModuleBlueprint& child : blueprint.children) module.register_module(child.name, make(child));
    module.define(blueprint.source);
    return module;
  }

 private:
  void add_tensors(Module& module, const ModuleBlueprint& blueprint) {
    for (const TensorBlueprint& parameter : blueprint.parameters) {
      module.register_parameter(parameter.name, weights_.make(parameter).set_requires_grad(true),
                                /*is_buffer=*/false);
    }
    for (const TensorBlueprint& buffer : blueprint.buffers) {
      module.register_buffer(buffer.name, weights_.make(buffer));
    }
  }

  std::shared_ptr<torch::jit::CompilationUnit> unit_;
  ParameterSource weights_;
};

Bytes weight_bytes(const ModuleBlueprint& blueprint, Bytes element_bytes) {
  Bytes bytes = 0;
  for (const TensorBlueprint& parameter : blueprint.parameters) {
    bytes += c10::multiply_integers(parameter.shape) * element_bytes;
  }
  for (const ModuleBlueprint& child : blueprint.children) bytes += weight_bytes(child, element_bytes);
  return bytes;
}

// Checked beforehand, because Linux promises more memory than exists and kills a process that uses it.
void require_memory(const std::string& name, Bytes weights) {
  constexpr Bytes kCopies = 2;  // the tensors, and the archive that they are written into
  const Bytes memory = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  if (weights <= memory / kCopies) return;
  throw environment_error("the zoo model '" + name + "' would have " + format_bytes(weights) +
                              " of parameters, but this machine has " + format_bytes(memory) + " of memory",
                          "give smaller sizes, or make the model with meta parameters: --meta");
}

// Replaces the dtype of a floating-point spec by that of the parameters.
std::string with_dtype(const std::string& spec, const std::string& dtype) {
  const std::string drawn = ZooWeights{}.dtype;
  return spec.starts_with(drawn) ? dtype + spec.substr(drawn.size()) : spec;
}

std::string archive(const ModelBlueprint& model, std::uint64_t seed, const ZooWeights& weights) {
  std::string specs;
  for (const std::string& input : model.inputs) specs += with_dtype(input, weights.dtype) + "\n";
  std::ostringstream out;
  ModuleMaker(seed, weights).make(model.root).save(out, {{kInputsExtraFile, specs}});
  return std::move(out).str();
}

void require_plain_name(const std::string& path) {
  if (!path.ends_with(".gz")) return;
  throw input_error("cannot write the model to '" + path +
                        "': a model is a zip archive, which cannot be compressed again as .gz",
                    "give a name that ends in .pt");
}

}  // namespace

void save_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                    std::uint64_t seed, const std::string& path, const ZooWeights& weights) {
  check_zoo_dtype(weights.dtype);
  const ModelBlueprint model = draw_zoo_model(name, sizes);
  require_plain_name(path);
  check_writable(path);
  const auto element_bytes = static_cast<Bytes>(c10::elementSize(scalar_type(weights.dtype)));
  if (!weights.meta) require_memory(name, weight_bytes(model.root, element_bytes));
  try {
    write_file(path, archive(model, seed, weights));
  } catch (const c10::Error& error) {
    throw environment_error("cannot make the zoo model '" + name + "': " + error.what_without_backtrace(),
                            "give smaller sizes if memory is short");
  }
}

}  // namespace offprof
