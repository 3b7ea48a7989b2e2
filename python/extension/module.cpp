// The module offprof._extension: offprof's engine inside a Python process. Import torch before it.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/version.h>

#include <exception>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "profiler/script/script_recording.h"
#include "profiler/stages/step_error.h"

namespace py = pybind11;

namespace offprof {
namespace {

/// Raises the exception of the package `offprof` for an Error.
void raise(const Error& error) {
  const char* name = error.kind() == ErrorKind::kInput ? "InputError" : "UnavailableError";
  const py::object type = py::module_::import("offprof.errors").attr(name);
  PyErr_SetObject(type.ptr(), type(error.what(), error.hint()).ptr());
}

at::Tensor tensor_of(py::handle object) {
  if (!THPVariable_Check(object.ptr())) throw py::type_error("a torch.Tensor is expected");
  return THPVariable_Unpack(object.ptr());
}

std::vector<at::Tensor> tensors_of(const py::sequence& objects) {
  std::vector<at::Tensor> tensors;
  for (const py::handle object : objects) tensors.push_back(tensor_of(object));
  return tensors;
}

/// Calls the function with the interpreter's lock.
Progress with_lock(std::function<void(const std::string&)> progress) {
  return [progress = std::move(progress)](const std::string& what) {
    const py::gil_scoped_acquire lock;
    progress(what);
  };
}

/// The recording of the process, as Python sees it. Work of the device runs without the interpreter's lock.
class Recording {
 public:
  Recording(const std::string& request, std::function<void(const std::string&)> progress)
      : recording_(request, with_lock(std::move(progress))) {}

  bool begin_step(const py::sequence& parameters, const py::sequence& buffers) {
    const ProgramTensors tensors{tensors_of(parameters), tensors_of(buffers)};
    return guarded([&] { return recording_.session().begin_step(tensors); });
  }
  void begin_phase(ScriptPhase phase) { recording_.session().begin_phase(phase); }
  void end_backward() {
    guarded([&] { recording_.session().end_backward(); });
  }
  void end_step() {
    guarded([&] { recording_.session().end_step(); });
  }
  void restart() {
    guarded([&] { recording_.restart(); });
  }
  bool fail() {
    return guarded([&] { return recording_.fail(); });
  }
  void write() {
    guarded([&] { recording_.write(); });
  }
  void write_error(bool is_input, const std::string& message, const std::string& hint) const {
    recording_.write_error({is_input ? ErrorKind::kInput : ErrorKind::kEnvironment, message, hint});
  }
  bool is_recorded() { return recording_.session().is_recorded(); }
  std::int64_t steps() { return recording_.session().steps(); }

 private:
  /// Converts exceptions of LibTorch to Error.
  template <typename Work>
  auto guarded(const Work& work) {
    const py::gil_scoped_release unlocked;
    try {
      return work();
    } catch (const std::exception& error) {
      throw step_error(error, recording_.device(), recording_.request().run.model_path);
    }
  }

  ScriptRecording recording_;
};

}  // namespace
}  // namespace offprof

PYBIND11_MODULE(_extension, module) {
  using offprof::Recording;
  using offprof::ScriptPhase;
  module.attr("torch_version") = TORCH_VERSION;
  py::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const offprof::Error& error) {
      offprof::raise(error);
    }
  });
  module.def("interpose_autograd_engine", &offprof::interpose_autograd_engine);
  module.def("tensors_saved_by_other_hooks", &offprof::tensors_saved_by_other_hooks);
  py::enum_<ScriptPhase>(module, "Phase")
      .value("FORWARD", ScriptPhase::kForward)
      .value("BACKWARD", ScriptPhase::kBackward)
      .value("OPTIMIZER", ScriptPhase::kOptimizer);
  py::class_<Recording>(module, "Recording")
      .def(py::init<const std::string&, std::function<void(const std::string&)>>(), py::arg("request"),
           py::arg("progress"))
      .def("begin_step", &Recording::begin_step, py::arg("parameters"), py::arg("buffers"))
      .def("begin_phase", &Recording::begin_phase, py::arg("phase"))
      .def("end_backward", &Recording::end_backward)
      .def("end_step", &Recording::end_step)
      .def("restart", &Recording::restart)
      .def("fail", &Recording::fail)
      .def("write", &Recording::write)
      .def("write_error", &Recording::write_error, py::arg("is_input"), py::arg("message"), py::arg("hint"))
      .def_property_readonly("is_recorded", &Recording::is_recorded)
      .def_property_readonly("steps", &Recording::steps);
}
