#include "python/extension/offloading_binding.h"

#include <pybind11/functional.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "profiler/offloading/offloading_policy.h"
#include "profiler/offloading/offloading_report.h"
#include "profiler/offloading/program_offloading.h"
#include "profiler/script/script_recording.h"
#include "python/extension/arguments.h"

namespace py = pybind11;

namespace offprof {
namespace {

using Unlocked = py::call_guard<py::gil_scoped_release>;

std::unique_ptr<ProgramOffloading> make_offloading(const std::string& policy, const std::string& settings,
                                                   const std::string& device, const std::string& disk,
                                                   PythonLocator locate) {
  PolicyFile file = offloading_policy(policy, settings);
  Device& opened = device_of_process(device, {});
  open_disk_for(file.policy, opened, disk);
  if (file.fallback) open_disk_for(file.fallback->policy, opened, disk);
  return std::make_unique<ProgramOffloading>(std::move(file), opened, locator_of(std::move(locate)));
}

void begin_call(ProgramOffloading& offloading, const py::sequence& inputs) {
  const std::vector<at::Tensor> tensors = tensors_of(inputs);
  const py::gil_scoped_release unlocked;
  offloading.begin_call(tensors);
}

void end_call(ProgramOffloading& offloading, const py::sequence& outputs) {
  const std::vector<at::Tensor> tensors = tensors_of(outputs);
  const py::gil_scoped_release unlocked;
  offloading.end_call(tensors);
}

void set_tensors(ProgramOffloading& offloading, const py::sequence& parameters, const py::sequence& buffers) {
  offloading.set_tensors({tensors_of(parameters), tensors_of(buffers)});
}

}  // namespace

void bind_offloading(py::module_& module) {
  py::enum_<ProgramOffloading::Boundary>(module, "Boundary")
      .value("ENTRY", ProgramOffloading::Boundary::kEntry)
      .value("STEP_END", ProgramOffloading::Boundary::kStepEnd);
  py::class_<ProgramOffloading>(module, "Offloading")
      .def(py::init(&make_offloading), py::arg("policy"), py::arg("settings"), py::arg("device"),
           py::arg("disk"), py::arg("locate"))
      .def("set_tensors", &set_tensors, py::arg("parameters"), py::arg("buffers"))
      .def("begin_step", &ProgramOffloading::begin_step, py::arg("where"), Unlocked())
      .def("end_step", &ProgramOffloading::end_step, py::arg("where"), Unlocked())
      .def("abandon_step", &ProgramOffloading::abandon_step, Unlocked())
      .def("begin_call", &begin_call, py::arg("inputs"))
      .def("end_call", &end_call, py::arg("outputs"))
      .def("end_backward", &ProgramOffloading::end_backward, Unlocked())
      .def("forget_in_child", &ProgramOffloading::forget_in_child)
      .def("enter", &ProgramOffloading::enter)
      .def("leave", &ProgramOffloading::leave)
      .def_property_readonly("has_step", &ProgramOffloading::has_step)
      .def_property_readonly("has_failed", &ProgramOffloading::has_failed)
      .def_property_readonly("has_saved", &ProgramOffloading::has_saved)
      .def_property_readonly("is_idle", &ProgramOffloading::is_idle)
      .def("report",
           [](const ProgramOffloading& offloading) { return format_offloading_report(offloading.report()); })
      .def("take_notes", &ProgramOffloading::take_notes);
}

}  // namespace offprof
