#pragma once

#include <ATen/core/function.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace offprof {

/// An attribute of a module, by the names that lead to it: {"norm", "running_mean"}.
using AttributePath = std::vector<std::string>;

/// Attributes of a module, and of those inside it, that a method of it writes, each once: buffers that it
/// changes in place, such as batch norm's running statistics, and what it assigns. Parameters are not among
/// them. Where calls of the method cannot be followed, all buffers. Reads the method's graph, and those of
/// what it calls.
std::vector<AttributePath> written_attributes(const torch::jit::Function& method, const c10::ClassType& type);

/// What attributes of a module hold at a point of the program.
class AttributeValues {
 public:
  AttributeValues() = default;
  /// As they are now: tensors are copied.
  AttributeValues(const c10::intrusive_ptr<c10::ivalue::Object>& module,
                  const std::vector<AttributePath>& attributes);

  /// What the attributes hold and what this does change places.
  void swap();

 private:
  struct Slot {
    c10::intrusive_ptr<c10::ivalue::Object> owner;
    std::size_t index = 0;
    c10::IValue value;
  };
  std::vector<Slot> slots_;
};

/// While it lives, the attributes hold `values`; then again what they held before.
class AttributeScope {
 public:
  explicit AttributeScope(AttributeValues& values) : values_(values) { values_.swap(); }
  ~AttributeScope() { values_.swap(); }
  AttributeScope(const AttributeScope&) = delete;
  AttributeScope& operator=(const AttributeScope&) = delete;

 private:
  AttributeValues& values_;
};

}  // namespace offprof
