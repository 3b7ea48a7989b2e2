// The calls that a pickle may make, and their replacements.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "engine/tensors/files/pickle_machine.h"
#include "engine/tensors/files/safetensors.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

struct StorageClass {
  std::string_view name;
  std::string_view dtype;
};

/// From torch/storage.py, `_dtype_to_storage_type_map`, without the quantised types.
constexpr std::array<StorageClass, 12> kStorageClasses = {{{"torch.FloatStorage", "float32"},
                                                           {"torch.DoubleStorage", "float64"},
                                                           {"torch.HalfStorage", "float16"},
                                                           {"torch.BFloat16Storage", "bfloat16"},
                                                           {"torch.LongStorage", "int64"},
                                                           {"torch.IntStorage", "int32"},
                                                           {"torch.ShortStorage", "int16"},
                                                           {"torch.CharStorage", "int8"},
                                                           {"torch.ByteStorage", "uint8"},
                                                           {"torch.BoolStorage", "bool"},
                                                           {"torch.ComplexFloatStorage", "complex64"},
                                                           {"torch.ComplexDoubleStorage", "complex128"}}};

}  // namespace

const PickleValue& PickleMachine::argument(const Items& arguments, std::size_t index, Kind kind) const {
  if (index >= arguments.size() || values_[arguments[index]].kind != kind)
    refuse("its pickle describes a tensor or a storage in a way that torch.save does not");
  return values_[arguments[index]];
}

bool PickleMachine::is_module_class(std::string_view name) const {
  return content_ == PickleContent::kModule && name.starts_with("__torch__.");
}

/// Makes an object of a TorchScript class from (class, arguments), which are empty.
void PickleMachine::new_object() {
  const Items items = pop_items(2);
  const std::string& name = argument(items, 0, Kind::kGlobal).text;
  if (!is_module_class(name)) refuse_call(name);
  make({.kind = Kind::kObject});
}

/// Sets the state of a TorchScript object: its attributes. Skips the state of an OrderedDict: the versions of
/// modules.
void PickleMachine::build() {
  const Id state = pop();
  if (!stack_.empty() && values_[stack_.back()].kind == Kind::kObject) {
    values_[stack_.back()].items = {state};
    return;
  }
  if (stack_.empty() || values_[stack_.back()].kind != Kind::kDict)
    refuse("its pickle sets the state of an object that is not a dictionary", kSaveHint);
}

/// Builds a storage from ('storage', its class, its key, its device, its length).
void PickleMachine::persistent_id() {
  const Items tuple = {pop()};
  const Items items = argument(tuple, 0, Kind::kTuple).items;
  if (argument(items, 0, Kind::kText).text != "storage")
    refuse("its pickle refers to an object that is not a storage");
  argument(items, 1, Kind::kGlobal);
  const std::string& key = argument(items, 2, Kind::kText).text;
  if (key.size() > kLongestName) refuse("its pickle has a storage name that is too long");
  make({.kind = Kind::kStorage, .text = key, .items = {items[1]}});
}

void PickleMachine::reduce() {
  const Items items = pop_items(2);
  const std::string& callee = argument(items, 0, Kind::kGlobal).text;
  const Items& arguments = argument(items, 1, Kind::kTuple).items;
  if (rebuild(callee, arguments)) return;
  refuse_call(callee);
}

void PickleMachine::refuse_call(const std::string& callee) const {
  if (callee == "torch._utils._rebuild_qtensor")
    refuse("has a quantised tensor", "Save its int_repr() and its scale, or dequantise it.");
  if (callee.starts_with("torch._utils._rebuild_sparse"))
    refuse("has a sparse tensor", "Save its indices and values, or call to_dense() before saving.");
  refuse(fmt::format("has a '{}', which only code could create, and offprof runs no code of a checkpoint",
                     printable(callee)),
         kSaveHint);
}

/// Returns false if `callee` must not be called.
bool PickleMachine::rebuild(const std::string& callee, const Items& arguments) {
  if (callee == "collections.OrderedDict" && arguments.empty()) return make({.kind = Kind::kDict}), true;
  if (callee == "torch._utils._rebuild_tensor" || callee == "torch._utils._rebuild_tensor_v2")
    return rebuild_tensor(arguments, false), true;
  if (callee == "torch._utils._rebuild_tensor_v3") return rebuild_tensor(arguments, true), true;
  if (callee.starts_with("torch._utils._rebuild_parameter") && !arguments.empty()) {
    argument(arguments, 0, Kind::kTensor);
    return push(arguments[0]), true;
  }
  // LibTorch's pickle_save wraps lists and dictionaries with their type; a Size is a tuple.
  if ((callee.starts_with("torch.jit._pickle.") || callee == "torch.Size") && !arguments.empty())
    return push(arguments[0]), true;
  if (callee == "torch.device") return make({}), true;
  if (is_module_class(callee)) return make({}), true;  // a member of an enumeration
  if (content_ == PickleContent::kModule && callee == "builtins.complex") return make({}), true;
  return false;
}

std::string PickleMachine::dtype_of(const PickleValue& storage) const {
  const std::string& name = values_[storage.items[0]].text;
  for (const StorageClass& known : kStorageClasses)
    if (known.name == name) return std::string(known.dtype);
  refuse(fmt::format("has a storage of class '{}', which offprof does not support", printable(name)),
         kSaveHint);
}

/// Builds a tensor from (storage, offset, sizes, strides, requires_grad, hooks, [dtype,] [metadata]), as in
/// torch/_utils.py.
void PickleMachine::rebuild_tensor(const Items& arguments, bool has_dtype) {
  const PickleValue& storage = argument(arguments, 0, Kind::kStorage);
  constexpr std::string_view kModule = "torch.";
  PickledTensor tensor{.storage = storage.text, .offset = argument(arguments, 1, Kind::kInteger).integer};
  argument(arguments, 2, Kind::kTuple);
  argument(arguments, 3, Kind::kTuple);
  tensor.sizes = integers(arguments[2]);
  tensor.strides = integers(arguments[3]);
  if (tensor.sizes.size() != tensor.strides.size())
    refuse(fmt::format("a tensor has {} sizes and {} strides", tensor.sizes.size(), tensor.strides.size()));
  if (has_dtype) {
    const std::string& dtype = argument(arguments, 6, Kind::kGlobal).text;
    tensor.dtype = dtype.starts_with(kModule) ? dtype.substr(kModule.size()) : dtype;
  } else {
    tensor.dtype = dtype_of(storage);
  }
  const std::size_t metadata = has_dtype ? 7 : 6;
  if (arguments.size() > metadata && !values_[arguments[metadata]].items.empty())
    refuse("has a tensor that is a conjugate view or a negative view",
           "Call resolve_conj() and resolve_neg() on the tensor, then save it.");
  tensors_.push_back(std::move(tensor));
  make({.kind = Kind::kTensor, .integer = static_cast<std::int64_t>(tensors_.size() - 1)});
}

std::vector<std::int64_t> PickleMachine::integers(Id id) const {
  std::vector<std::int64_t> numbers;
  if (values_[id].items.size() > kMostDimensions) refuse("has a tensor with too many dimensions");
  for (std::size_t i = 0; i < values_[id].items.size(); ++i)
    numbers.push_back(argument(values_[id].items, i, Kind::kInteger).integer);
  return numbers;
}

}  // namespace offprof
