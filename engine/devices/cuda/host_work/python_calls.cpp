#include "engine/devices/cuda/host_work/python_calls.h"

#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "engine/devices/cuda/host_work/host_work.h"
#include "engine/devices/cuda_plugin.h"

namespace offprof {
namespace {

/// Objects of CPython, of which only addresses are used. This library is not linked with Python: its
/// functions are looked up in the process, and exist there only if Python runs in it.
struct PyObject;
struct PyThreadState;
struct PyInterpreterState;
/// A frame that is evaluated: PyFrameObject before Python 3.11, _PyInterpreterFrame since.
struct PyFrame;
using EvaluateFrame = PyObject*(PyThreadState* thread, PyFrame* frame, int throws);

template <typename Function>
Function* find_function(const char* name, const char* newer_name = nullptr) {
  void* found = dlsym(RTLD_DEFAULT, name);
  if (found == nullptr && newer_name != nullptr) found = dlsym(RTLD_DEFAULT, newer_name);
  return reinterpret_cast<Function*>(found);
}

/// CPython's functions, of Python 3.9 to 3.14.
struct CPython {
  const char* (*version)() = find_function<const char*()>("Py_GetVersion");
  int (*ensure_lock)() = find_function<int()>("PyGILState_Ensure");
  void (*release_lock)(int) = find_function<void(int)>("PyGILState_Release");
  PyInterpreterState* (*interpreter)() = find_function<PyInterpreterState*()>("PyInterpreterState_Get");
  EvaluateFrame* (*evaluation)(PyInterpreterState*) =
      find_function<EvaluateFrame*(PyInterpreterState*)>("_PyInterpreterState_GetEvalFrameFunc");
  void (*set_evaluation)(PyInterpreterState*, EvaluateFrame*) =
      find_function<void(PyInterpreterState*, EvaluateFrame*)>("_PyInterpreterState_SetEvalFrameFunc");
  /// Returns a new reference. Python 3.11 has neither function.
  PyObject* (*code_of_frame)(PyFrame*) =
      find_function<PyObject*(PyFrame*)>("PyUnstable_InterpreterFrame_GetCode");
  PyObject* (*code_of_old_frame)(PyFrame*) = find_function<PyObject*(PyFrame*)>("PyFrame_GetCode");
  void (*drop)(PyObject*) = find_function<void(PyObject*)>("Py_DecRef");
  PyObject* (*attribute)(PyObject*, const char*) =
      find_function<PyObject*(PyObject*, const char*)>("PyObject_GetAttrString");
  const char* (*text)(PyObject*) = find_function<const char*(PyObject*)>("PyUnicode_AsUTF8");
  void (*clear_error)() = find_function<void()>("PyErr_Clear");
  long (*request_mark)(void (*)(void*)) = find_function<long(void (*)(void*))>(
      "_PyEval_RequestCodeExtraIndex", "PyUnstable_Eval_RequestCodeExtraIndex");
  int (*mark)(PyObject*, long,
              void**) = find_function<int(PyObject*, long, void**)>("_PyCode_GetExtra",
                                                                    "PyUnstable_Code_GetExtra");
  int (*set_mark)(PyObject*, long,
                  void*) = find_function<int(PyObject*, long, void*)>("_PyCode_SetExtra",
                                                                      "PyUnstable_Code_SetExtra");

  bool is_complete() const {
    return version && ensure_lock && release_lock && interpreter && evaluation && set_evaluation &&
           (code_of_frame || code_of_old_frame) && drop && attribute && text && clear_error && request_mark &&
           mark && set_mark;
  }
};

/// Kind of a function. Its code object is marked with one of `kinds`.
enum class Kind {
  kOther,
  kScope,            ///< by which a module or an optimizer is called
  kLeftOut,          ///< not told, but what it calls is
  kLeftOutWithCalls  ///< not told, nor what it calls, but for modules
};
Kind kinds[] = {Kind::kOther, Kind::kScope, Kind::kLeftOut, Kind::kLeftOutWithCalls};

CPython python;
EvaluateFrame* evaluate = nullptr;  ///< the function before; nullptr: calls are not seen
long mark_index = -1;
bool is_python_3_11 = false;

std::atomic<GpuOperators*> told = nullptr;
thread_local bool is_program = false;
/// Number of modules, optimizers and nodes that this thread runs, one within the other.
thread_local int scopes = 0;

/// A code object, and whether the reference has to be dropped.
class Code {
 public:
  explicit Code(PyFrame* frame) {
    if (is_python_3_11) {
      // f_code is the fifth pointer of _PyInterpreterFrame, and no function returns it.
      code_ = reinterpret_cast<PyObject* const*>(frame)[4];
      return;
    }
    code_ = python.code_of_frame ? python.code_of_frame(frame) : python.code_of_old_frame(frame);
    is_owned_ = true;
  }
  ~Code() {
    if (is_owned_) python.drop(code_);
  }
  Code(const Code&) = delete;
  Code& operator=(const Code&) = delete;

  Kind kind() const {
    void* mark = nullptr;
    if (python.mark(code_, mark_index, &mark) != 0) return Kind::kOther;
    if (mark == nullptr) {
      mark = &kinds[static_cast<int>(find_kind())];
      python.set_mark(code_, mark_index, mark);
    }
    return *static_cast<Kind*>(mark);
  }

 private:
  Kind find_kind() const {
    const std::string file = text("co_filename"), function = text("co_name");
    if (file.ends_with("torch/nn/modules/module.py")) {
      if (function == "_wrapped_call_impl") return Kind::kScope;
      if (function == "inner")
        return Kind::kLeftOut;  // for a module with hooks, such as those of a recording
    }
    if (file.ends_with("torch/optim/optimizer.py") && function == "wrapper") return Kind::kScope;
    // Python 3.11 evaluates these itself, once it has specialized the instruction that calls them.
    if (function == "__getitem__") return Kind::kLeftOut;
    // It checkpoints modules as the program would.
    if (file.ends_with("/offprof/checkpointing.py")) return Kind::kLeftOut;
    // Dictionaries compare keys whose hashes collide, which addresses decide. Garbage collection ends
    // objects.
    if (function == "__eq__" || function == "__del__" || is_in_package(file)) return Kind::kLeftOutWithCalls;
    return Kind::kOther;
  }

  /// Returns true for a file of the Python package offprof, which has this library in its folder.
  static bool is_in_package(const std::string& file) {
    constexpr std::string_view kFolder = "/offprof/";
    const std::size_t begin = file.rfind(kFolder);
    return begin != std::string::npos &&
           std::filesystem::exists(file.substr(0, begin + kFolder.size()) + kCudaPluginLibrary);
  }

  /// Returns an attribute; empty if it is no UTF-8, as the name of a file may be.
  std::string text(const char* attribute) const {
    PyObject* const value = python.attribute(code_, attribute);
    const char* const found = value == nullptr ? nullptr : python.text(value);
    std::string text = found == nullptr ? "" : found;
    if (found == nullptr) python.clear_error();
    if (value != nullptr) python.drop(value);
    return text;
  }

  PyObject* code_;
  bool is_owned_ = false;
};

void tell_call() {
  if (GpuOperators* const gpu = told) gpu->spend_host_time(HostWork::kPythonFunction, 1);
}

PyObject* tell_and_evaluate(PyThreadState* thread, PyFrame* frame, int throws) {
  if (scopes == 0 && !is_program) return evaluate(thread, frame, throws);  // no function is told here
  // With an exception on its way, Python must not be asked for attributes.
  const Kind kind = throws != 0 ? Kind::kOther : Code(frame).kind();
  const bool begins_scope = kind == Kind::kScope;
  if (begins_scope || (kind == Kind::kOther && scopes > 0)) tell_call();
  if (!begins_scope && kind != Kind::kLeftOutWithCalls) return evaluate(thread, frame, throws);
  const int before = std::exchange(scopes, begins_scope ? scopes + 1 : 0);
  PyObject* const result = evaluate(thread, frame, throws);
  scopes = before;
  return result;
}

/// Has Python evaluate frames by tell_and_evaluate from now on.
void see_calls() {
  if (evaluate != nullptr || !is_python_process() || !python.is_complete()) return;
  int major = 0, minor = 0;
  std::sscanf(python.version(), "%d.%d", &major, &minor);
  if (major != 3 || minor < 9 || minor > 14) return;
  is_python_3_11 = minor == 11;
  const int lock = python.ensure_lock();
  mark_index = python.request_mark(nullptr);
  if (mark_index >= 0) {
    evaluate = python.evaluation(python.interpreter());
    python.set_evaluation(python.interpreter(), &tell_and_evaluate);
  }
  python.release_lock(lock);
}

}  // namespace

PythonCalls::PythonCalls(GpuOperators& gpu) {
  is_program = true;
  told = &gpu;
  see_calls();
}

PythonCalls::~PythonCalls() {
  told = nullptr;
}

void PythonCalls::begin_node() {
  ++scopes;
}

void PythonCalls::end_node() {
  --scopes;
}

}  // namespace offprof
