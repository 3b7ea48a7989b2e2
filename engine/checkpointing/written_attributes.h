#pragma once

#include <ATen/core/function.h>
#include <ATen/core/ivalue.h>

#include <string>
#include <vector>

namespace offprof {

/// An attribute of a module, by the names on the way to it: {"norm", "running_mean"}.
using AttributePath = std::vector<std::string>;

/// Returns the attributes of a module and of its submodules that `method` writes, each once: buffers changed
/// in place, such as batch norm's running statistics, and assigned attributes. Parameters are excluded. If
/// calls of the method cannot be followed, all buffers are returned. Reads the graphs of the method and of
/// the functions that it calls.
std::vector<AttributePath> written_attributes(const torch::jit::Function& method, const c10::ClassType& type);

/// Values of a module's attributes at some time.
class AttributeValues {
 public:
  AttributeValues() = default;
  /// Copies the current values, tensors included.
  AttributeValues(const c10::intrusive_ptr<c10::ivalue::Object>& module,
                  const std::vector<AttributePath>& attributes);

  /// Exchanges the attributes' values with those in this object.
  void swap();

 private:
  struct Slot {
    c10::intrusive_ptr<c10::ivalue::Object> owner;
    std::size_t index = 0;
    c10::IValue value;
  };
  std::vector<Slot> slots_;
};

/// Sets the attributes to `values` while this object lives, and restores them afterwards.
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
