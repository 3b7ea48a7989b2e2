#include "engine/models/model.h"

#include <ATen/Functions.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <optional>

#include "engine/models/inputs/archive_kind.h"
#include "engine/models/inputs/input_spec.h"
#include "engine/torch/torch_error.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr const char* kInputsRecord = "extra/offprof.inputs";

using caffe2::serialize::PyTorchStreamReader;

std::string first_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(4, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<std::size_t>(file.gcount()));
  return bytes;
}

void check_is_zip(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code failure;
  if (!fs::exists(path, failure)) throw input_error(path + ": no such file");
  if (fs::is_directory(path, failure)) throw input_error(path + ": is a folder, but a model is a file");
  check_zip_head(first_bytes(path), path);
}

std::unique_ptr<PyTorchStreamReader> open_archive(const std::string& path) {
  check_is_zip(path);
  std::vector<std::string> records;
  std::unique_ptr<PyTorchStreamReader> reader;
  try {
    reader = std::make_unique<PyTorchStreamReader>(path);
    records = reader->getAllRecords();
  } catch (const std::exception& error) {
    throw input_error(path + ": a damaged or truncated archive, or a zip that PyTorch did not write (" +
                          readable_reason(error) + ")",
                      "copy or export it again");
  }
  if (reader->hasRecord("constants.pkl") && reader->hasRecord("data.pkl")) return reader;
  throw input_error(path + ": " + what_archive_is(records), kHowToExport);
}

void collect_parameters(Model& model) {
  bool archive_trains = false;
  for (const at::Tensor& parameter : model.module.parameters()) archive_trains |= parameter.requires_grad();
  for (const auto& parameter : model.module.named_parameters()) {
    at::Tensor value = parameter.value;
    model.info.parameters += value.numel();
    model.info.parameter_bytes += static_cast<Bytes>(value.nbytes());
    if (!archive_trains && value.is_floating_point()) value.set_requires_grad(true);
    if (!value.requires_grad()) continue;
    model.parameters.push_back(value);
    model.parameter_names.push_back(parameter.name);
  }
}

at::ScalarType scalar_type(const std::string& dtype) {
  static const std::map<std::string, at::ScalarType> kTypes = {
      {"float32", at::kFloat}, {"float64", at::kDouble}, {"float16", at::kHalf}, {"bfloat16", at::kBFloat16},
      {"int64", at::kLong},    {"int32", at::kInt},      {"int16", at::kShort},  {"int8", at::kChar},
      {"uint8", at::kByte},    {"bool", at::kBool}};
  return kTypes.at(dtype);
}

at::Tensor make_input(const InputSpec& spec) {
  const at::ScalarType type = scalar_type(spec.dtype);
  if (at::isFloatingType(type)) return at::randn(spec.sizes, at::TensorOptions(at::kFloat)).to(type);
  return at::randint(spec.below.value_or(2), spec.sizes, at::TensorOptions(at::kLong)).to(type);
}

bool may_be_tensor(const c10::TypePtr& type) {
  return type->kind() == c10::TypeKind::TensorType || c10::TensorType::get()->isSubtypeOf(*type);
}

/// Throws Error (input) if the argument cannot be a tensor: input specs describe tensors only.
void refuse_other_than_tensor(const Model& model, const c10::Argument& argument) {
  if (may_be_tensor(argument.type())) return;
  const std::string type = argument.type()->annotation_str();
  const bool holds_tensors = type.find("Tensor") != std::string::npos;
  throw input_error(
      model.info.name + ": forward takes '" + argument.name() + "' of type " + type +
          ", but inputs can only be tensors",
      holds_tensors
          ? "export a module whose forward takes each tensor as its own argument, and builds the " + type +
                " from them"
          : "export a module whose forward takes only tensors; other arguments may have default values");
}

const std::vector<c10::Argument>& forward_arguments(const Model& model) {
  return model.module.get_method("forward").function().getSchema().arguments();
}

void refuse_required_non_tensors(const Model& model) {
  const std::vector<c10::Argument>& arguments = forward_arguments(model);
  for (std::size_t i = 1; i < arguments.size(); ++i)
    if (!arguments[i].default_value()) refuse_other_than_tensor(model, arguments[i]);
}

}  // namespace

Model load_model(const std::string& path) {
  open_archive(path);
  Model model;
  try {
    model.module = torch::jit::load(path, c10::Device(c10::kCPU));
    model.module.train();
  } catch (const std::exception& error) {  // a damaged archive can also cause std::out_of_range and others
    throw input_error(path + ": LibTorch cannot load it: " + readable_reason(error),
                      "export it again with PyTorch " TORCH_VERSION);
  }
  if (!model.module.find_method("forward"))
    throw input_error(path + ": the module has no forward method", kHowToExport);
  model.info.name = std::filesystem::path(path).filename().string();
  model.info.fingerprint = fingerprint_of_file(path);
  refuse_required_non_tensors(model);
  collect_parameters(model);
  if (model.parameters.empty())
    throw input_error(path + ": the module has no parameters to train",
                      "a frozen module has none: export it without torch.jit.freeze, in training mode");
  return model;
}

std::vector<std::string> input_specs_in_archive(const std::string& path) {
  const auto reader = open_archive(path);
  if (!reader->hasRecord(kInputsRecord)) return {};
  const auto [data, size] = reader->getRecord(kInputsRecord);
  return split_input_specs({static_cast<const char*>(data.get()), size});
}

void make_inputs(Model& model, const std::vector<std::string>& specs) {
  const c10::FunctionSchema& schema = model.module.get_method("forward").function().getSchema();
  const std::size_t most = schema.arguments().size() - 1;  // without self
  const auto least = static_cast<std::size_t>(
      std::count_if(schema.arguments().begin() + 1, schema.arguments().end(),
                    [](const c10::Argument& argument) { return !argument.default_value().has_value(); }));
  if (specs.size() < least || specs.size() > most) {
    std::string names;
    for (std::size_t i = 1; i <= most; ++i) names += (i > 1 ? ", " : "") + schema.arguments()[i].name();
    throw input_error(
        model.info.name + ": forward takes " +
            (least == most ? std::to_string(most) : std::to_string(least) + " to " + std::to_string(most)) +
            " inputs (" + names + "), but " + std::to_string(specs.size()) + " were given",
        "give one --input for each, such as --input 'int64[4,128]<512'");
  }
  for (std::size_t i = 0; i < specs.size(); ++i) {
    refuse_other_than_tensor(model, schema.arguments()[i + 1]);
    model.inputs.emplace_back(make_input(parse_input_spec(specs[i])));
  }
}

Residents residents_of(const Model& model, const DeviceAllocator& allocator) {
  Residents residents;
  for (const at::Tensor& parameter : model.module.parameters())
    residents.add(parameter, StorageRole::kParameter, allocator);
  for (const at::Tensor& buffer : model.module.buffers())
    residents.add(buffer, StorageRole::kBuffer, allocator);
  for (const c10::IValue& input : model.inputs)
    residents.add(input.toTensor(), StorageRole::kInput, allocator);
  return residents;
}

c10::IValue run_forward(Model& model, const std::vector<c10::IValue>& inputs) {
  try {
    return model.module.forward(inputs);
  } catch (const std::exception& error) {
    if (model.checkpointed)
      if (const auto refusal = model.checkpointed->take_refusal()) throw Error(*refusal);
    throw forward_error(model, inputs, error);
  }
}

Error forward_error(const Model& model, const std::vector<c10::IValue>& inputs, const std::exception& error) {
  std::string specs;
  for (const c10::IValue& input : inputs) {
    specs += specs.empty() ? "" : ", ";
    specs += std::string(c10::toString(input.toTensor().scalar_type())) + c10::str(input.toTensor().sizes());
  }
  return input_error(
      model.info.name + ": forward does not accept these inputs (" + specs + "): " + readable_reason(error),
      "give the shapes and dtypes that the model was exported for: --input 'int64[4,128]<512'");
}

namespace {

bool can_start_backward(const at::Tensor& tensor) {
  return tensor.defined() && tensor.is_floating_point() && tensor.requires_grad();
}

/// Returns the first tensor in the output, depth first, that backward can start from.
std::optional<at::Tensor> first_differentiable(const c10::IValue& value) {
  if (value.isTensor())
    return can_start_backward(value.toTensor()) ? std::optional(value.toTensor()) : std::nullopt;
  std::vector<c10::IValue> parts;
  if (value.isTuple()) parts = value.toTupleRef().elements().vec();
  if (value.isList()) parts = value.toListRef().vec();
  if (value.isGenericDict())
    for (const auto& entry : value.toGenericDict()) parts.push_back(entry.value());
  if (value.isObject()) parts = value.toObjectRef().slots();
  for (const c10::IValue& part : parts)
    if (const auto found = first_differentiable(part)) return found;
  return std::nullopt;
}

}  // namespace

at::Tensor loss_of(const c10::IValue& output, const std::string& loss) {
  const std::optional<at::Tensor> found = first_differentiable(output);
  if (!found)
    throw input_error(
        "the model's output has no floating-point tensor that depends on a trained parameter, so there "
        "is nothing to differentiate",
        "return the loss, or the logits, from forward");
  if (loss == "auto" && found->numel() == 1) return found->dim() == 0 ? *found : found->sum();
  const at::Tensor squares = found->to(at::kFloat).pow(2);
  return loss == "sum" ? squares.sum() : squares.mean();
}

}  // namespace offprof
