#include "engine/torch/ivalue_tensors.h"

#include <ATen/core/jit_type.h>

#include <utility>
#include <vector>

namespace offprof {
namespace {

using Replace = std::function<at::Tensor(const at::Tensor&)>;

c10::IValue replaced_in_list(const c10::IValue& value, const Replace& replace) {
  const auto list = value.toList();
  c10::impl::GenericList result(list.elementType());
  result.reserve(list.size());
  for (const c10::IValue& element : value.toListRef())
    result.push_back(with_tensors_replaced(element, replace));
  return result;
}

c10::IValue replaced_in_tuple(const c10::IValue& value, const Replace& replace) {
  const auto tuple = value.toTuple();
  std::vector<c10::IValue> elements;
  for (const c10::IValue& element : tuple->elements())
    elements.push_back(with_tensors_replaced(element, replace));
  return c10::ivalue::Tuple::createNamed(std::move(elements), tuple->type<c10::TupleType>());
}

c10::IValue replaced_in_dict(const c10::IValue& value, const Replace& replace) {
  const auto dict = value.toGenericDict();
  c10::impl::GenericDict result(dict.keyType(), dict.valueType());
  for (const auto& entry : dict) result.insert(entry.key(), with_tensors_replaced(entry.value(), replace));
  return result;
}

}  // namespace

c10::IValue with_tensors_replaced(const c10::IValue& value, const Replace& replace) {
  if (value.isTensor()) return replace(value.toTensor());
  if (value.isList()) return replaced_in_list(value, replace);
  if (value.isTuple()) return replaced_in_tuple(value, replace);
  if (value.isGenericDict()) return replaced_in_dict(value, replace);
  return value;
}

}  // namespace offprof
