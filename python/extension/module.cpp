// The module offprof._extension: offprof's engine inside a Python process. Import torch before it.
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <torch/version.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd/wrapped_tensor.h"
#include "profiler/recorder/pass_recorder.h"
#include "profiler/script/script_recording.h"
#include "profiler/stages/gradient_check.h"
#include "profiler/stages/step_error.h"
#include "profiler/steps/gathered_storages.h"
#include "python/extension/arguments.h"
#include "python/extension/offloading_binding.h"
#include "traces/analysis/fingerprint.h"
#include "traces/format/metrics_io.h"
#include "traces/format/policy_io.h"
#include "traces/io/json_access.h"
#include "traces/io/output_lock.h"

namespace py = pybind11;

namespace offprof {
namespace {

/// Raises the exception of the package `offprof` for an Error.
void raise(const Error& error) {
  const char* name = error.kind() == ErrorKind::kInput ? "InputError" : "UnavailableError";
  const py::object type = py::module_::import("offprof.errors").attr(name);
  PyErr_SetObject(type.ptr(), type(error.what(), error.hint()).ptr());
}

/// Returns the tensor, which may be None, as an undefined tensor then.
at::Tensor tensor_or_none(py::handle object) {
  return object.is_none() ? at::Tensor() : tensor_of(object);
}

std::vector<at::Tensor> gradients_of(const py::sequence& objects) {
  std::vector<at::Tensor> gradients;
  for (const py::handle object : objects) gradients.push_back(tensor_or_none(object));
  return gradients;
}

/// Keeps a function of Python alive, and releases it with the interpreter's lock.
std::shared_ptr<py::function> shared(py::function function) {
  return {new py::function(std::move(function)), [](py::function* held) {
            const py::gil_scoped_acquire lock;
            delete held;
          }};
}

/// See set_unwrapper. `function` returns None, or the tensor inside and a function that wraps another.
void set_python_unwrapper(py::function function) {
  set_unwrapper(
      [function = shared(std::move(function))](const at::Tensor& tensor) -> std::optional<WrappedTensor> {
        const py::gil_scoped_acquire lock;
        const py::object found = (*function)(object_of(tensor));
        if (found.is_none()) return std::nullopt;
        auto [inner, wrap] = found.cast<std::pair<py::object, py::function>>();
        return WrappedTensor{tensor_of(inner), [wrap = shared(std::move(wrap))](const at::Tensor& plain) {
                               const py::gil_scoped_acquire locked;
                               return tensor_of((*wrap)(object_of(plain)));
                             }};
      });
}

/// Compares gradients with those of plain passes: see GradientReference.
class GradientsOfProgram {
 public:
  /// `plain` makes a plain pass and returns the gradients by parameter, a tensor or None each.
  GradientsOfProgram(std::vector<std::string> names, const py::function& plain)
      : reference_(std::move(names), [plain] { return gradients_of(plain()); }) {}

  /// Returns the verdict: see the result of GradientReference::check.
  std::string check(const py::sequence& gradients, bool may_lose) {
    return reference_.check(gradients_of(gradients), may_lose).verdict;
  }

 private:
  GradientReference reference_;
};

/// Returns the text of a ScriptRequest for a program that records itself. `policies` are names of presets or
/// paths of policy files; the first is measured, the others are compared. `steps` are measured under each;
/// nullopt: see ScriptRequest::has_default_steps.
std::string make_request(const std::string& program, const std::string& device,
                         const std::vector<std::string>& policies, std::optional<int> steps, int warmup,
                         int threads, const std::string& trace_path, const std::string& outcome_path) {
  ScriptRequest request;
  request.run.model_path = program;
  request.run.device = device;
  request.run.threads = threads;
  request.has_default_steps = !steps;
  if (steps) request.run.settings.steps = *steps;
  request.run.settings.warmup = warmup;
  request.run.settings.loss = request.run.settings.optimizer = kOfScript;
  request.fingerprint = fingerprint(program);
  request.argv = {"offprof.record", program};
  request.trace_path = trace_path;
  request.outcome_path = outcome_path;
  for (const std::string& name : policies) {
    const PolicyFile file = load_policy(name);
    if (&name == &policies.front()) {
      request.run.policy = file.policy;
      request.run.policy_made_for = file.trace_fingerprint;
      request.run.policy_saved_fingerprint = file.saved_fingerprint;
      if (file.fallback) request.run.fallback = file.fallback->policy;
    } else {
      request.compared.push_back(file.policy);
    }
  }
  return format_script_request(request);
}

/// The recording of the process, as Python sees it. Work of the device runs without the interpreter's lock.
class ProgramRecording {
 public:
  ProgramRecording(const std::string& request, std::function<void(const std::string&)> progress,
                   PythonLocator locate)
      : recording_(request, with_lock(std::move(progress)), locator_of(std::move(locate))) {}

  /// Calls `work` without the interpreter's lock. Converts exceptions of LibTorch to Error.
  template <typename Work>
  auto guarded(const Work& work) {
    const py::gil_scoped_release unlocked;
    try {
      return work();
    } catch (const std::exception& error) {
      throw step_error(error, recording_.device(), recording_.request().run.model_path);
    }
  }

  bool begin_step(const py::sequence& parameters, const py::sequence& buffers,
                  const std::optional<py::sequence>& optimizer_states, const py::sequence& gradients) {
    ProgramTensors tensors{.parameters = tensors_of(parameters),
                           .buffers = tensors_of(buffers),
                           .optimizer_states = {},
                           .gradients = tensors_of(gradients)};
    if (optimizer_states) tensors.optimizer_states = tensors_of(*optimizer_states);
    return guarded([&] { return recording_.session().begin_step(tensors); });
  }
  /// Begins a step under the request's policy, or under the policy of that index among those to compare.
  void begin_unrecorded_step(const py::sequence& parameters, const py::sequence& buffers, int compared) {
    const ProgramTensors tensors{tensors_of(parameters), tensors_of(buffers)};
    guarded([&] { recording_.session().begin_unrecorded_step(policy(compared), tensors); });
  }
  bool may_lose(int compared) { return recording_.session().may_lose(policy(compared)); }
  void begin_phase(ScriptPhase phase) { recording_.session().begin_phase(phase); }
  void begin_call(const py::sequence& inputs) {
    const std::vector<at::Tensor> tensors = tensors_of(inputs);
    guarded([&] { recording_.session().begin_call(tensors); });
  }
  void end_call(const py::sequence& outputs) {
    const std::vector<at::Tensor> tensors = tensors_of(outputs);
    guarded([&] { recording_.session().end_call(tensors); });
  }
  void end_backward() {
    guarded([&] { recording_.session().end_backward(); });
  }
  void end_step() {
    guarded([&] { recording_.session().end_step(); });
  }
  void forget_in_child() { recording_.session().forget_in_child(); }
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
  std::vector<std::string> take_notes() { return recording_.device().take_notes(); }
  bool is_recorded() { return recording_.session().is_recorded(); }
  std::string outcome() { return format_script_outcome(recording_.outcome()); }
  std::string measured() { return dump_json(metrics_to_json(recording_.session().result().trace.metrics)); }
  std::string gradients() { return recording_.session().result().trace.gradients; }
  void add_note(const std::string& note) { recording_.session().result().trace.notes.push_back(note); }
  void set_gradients(const std::string& verdict) { recording_.session().result().trace.gradients = verdict; }
  std::int64_t steps() { return recording_.session().steps(); }
  std::int64_t steps_left() { return recording_.session().steps_left(); }

 private:
  const Policy& policy(int compared) const {
    const ScriptRequest& request = recording_.request();
    return compared < 0 ? request.run.policy : request.compared.at(static_cast<std::size_t>(compared));
  }

  ScriptRecording recording_;
};

}  // namespace
}  // namespace offprof

PYBIND11_MODULE(_extension, module) {
  using offprof::ProgramRecording;
  using offprof::ScriptPhase;
  module.attr("torch_version") = TORCH_VERSION;
  py::register_local_exception_translator([](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
    } catch (const offprof::Error& error) {
      offprof::raise(error);
    }
  });
  module.def("make_request", &offprof::make_request, py::arg("program"), py::arg("device"),
             py::arg("policies"), py::arg("steps"), py::arg("warmup"), py::arg("threads"),
             py::arg("trace_path"), py::arg("outcome_path"));
  module.def(
      "open_device", [](const std::string& name) { offprof::device_of_process(name, {}); }, py::arg("name"));
  module.def(
      "add_gathered_parameter",
      [](py::handle tensor) {
        const at::Tensor parameter = offprof::tensor_of(tensor);
        offprof::add_gathered_storage(parameter);
        offprof::PassRecorder::note_gathered(parameter);
      },
      py::arg("tensor"));
  py::class_<offprof::OutputLock>(module, "OutputLock").def(py::init<const std::string&>(), py::arg("path"));
  module.def("set_unwrapper", &offprof::set_python_unwrapper);
  module.def("interpose_autograd_engine", &offprof::interpose_autograd_engine);
  module.def("tensors_saved_by_other_hooks", &offprof::tensors_saved_by_other_hooks);
  py::enum_<ScriptPhase>(module, "Phase")
      .value("FORWARD", ScriptPhase::kForward)
      .value("BACKWARD", ScriptPhase::kBackward)
      .value("OPTIMIZER", ScriptPhase::kOptimizer);
  py::class_<offprof::GradientsOfProgram>(module, "GradientCheck")
      .def(py::init<std::vector<std::string>, const py::function&>(), py::arg("names"), py::arg("plain"))
      .def("check", &offprof::GradientsOfProgram::check, py::arg("gradients"), py::arg("may_lose"));
  offprof::bind_offloading(module);
  py::class_<ProgramRecording>(module, "Recording")
      .def(py::init<const std::string&, std::function<void(const std::string&)>, offprof::PythonLocator>(),
           py::arg("request"), py::arg("progress"), py::arg("locate"))
      .def("begin_step", &ProgramRecording::begin_step, py::arg("parameters"), py::arg("buffers"),
           py::arg("optimizer_states"), py::arg("gradients"))
      .def("begin_unrecorded_step", &ProgramRecording::begin_unrecorded_step, py::arg("parameters"),
           py::arg("buffers"), py::arg("compared") = -1)
      .def("may_lose", &ProgramRecording::may_lose, py::arg("compared") = -1)
      .def("begin_phase", &ProgramRecording::begin_phase, py::arg("phase"))
      .def("begin_call", &ProgramRecording::begin_call, py::arg("inputs"))
      .def("end_call", &ProgramRecording::end_call, py::arg("outputs"))
      .def("end_backward", &ProgramRecording::end_backward)
      .def("end_step", &ProgramRecording::end_step)
      .def("forget_in_child", &ProgramRecording::forget_in_child)
      .def("restart", &ProgramRecording::restart)
      .def("fail", &ProgramRecording::fail)
      .def("write", &ProgramRecording::write)
      .def("take_notes", &ProgramRecording::take_notes)
      .def("add_note", &ProgramRecording::add_note, py::arg("note"))
      .def("write_error", &ProgramRecording::write_error, py::arg("is_input"), py::arg("message"),
           py::arg("hint"))
      .def_property_readonly("is_recorded", &ProgramRecording::is_recorded)
      .def_property_readonly("outcome", &ProgramRecording::outcome)
      .def_property_readonly("measured", &ProgramRecording::measured)
      .def_property("gradients", &ProgramRecording::gradients, &ProgramRecording::set_gradients)
      .def_property_readonly("steps", &ProgramRecording::steps)
      .def_property_readonly("steps_left", &ProgramRecording::steps_left);
}
