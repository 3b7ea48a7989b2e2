#pragma once

#include <ATen/core/Tensor.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/recorder/code_location.h"

namespace offprof {

/// Returns the tensor in a Python object. Throws TypeError for another object.
inline at::Tensor tensor_of(pybind11::handle object) {
  if (!THPVariable_Check(object.ptr())) throw pybind11::type_error("a torch.Tensor is expected");
  return THPVariable_Unpack(object.ptr());
}

/// Returns the Python object of a tensor. Needs the interpreter's lock.
inline pybind11::object object_of(const at::Tensor& tensor) {
  return pybind11::reinterpret_steal<pybind11::object>(THPVariable_Wrap(tensor));
}

inline std::vector<at::Tensor> tensors_of(const pybind11::sequence& objects) {
  std::vector<at::Tensor> tensors;
  for (const pybind11::handle object : objects) tensors.push_back(tensor_of(object));
  return tensors;
}

/// Returns a function that calls `function` with the interpreter's lock.
template <typename Result, typename... Arguments>
std::function<Result(Arguments...)> with_lock(std::function<Result(Arguments...)> function) {
  return [function = std::move(function)](Arguments... arguments) {
    const pybind11::gil_scoped_acquire lock;
    return function(arguments...);
  };
}

/// A CodeLocator in Python: returns the module and the line.
using PythonLocator = std::function<std::pair<std::string, std::string>()>;

inline CodeLocator locator_of(PythonLocator locate) {
  return [locate = with_lock(std::move(locate))] {
    auto [module, line] = locate();
    return CodeLocation{std::move(module), std::move(line)};
  };
}

}  // namespace offprof
