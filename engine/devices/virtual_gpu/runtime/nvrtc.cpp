#include <cstddef>
#include <cstring>
#include <map>
#include <string>

// The compiler for kernels that PyTorch writes at run time (its jiterator). Its output is the kernel's name,
// which the driver's stand-in launches.

namespace {

// A minor version that no compiler has. PyTorch keeps compiled kernels on disk, and must not confuse those of
// this stand-in with those of a real compiler.
constexpr int kMajor = 13;
constexpr int kMinor = 9999;

constexpr char kCode[] = "no code";

struct StepProgram {
  std::map<std::string, std::string> names;  // addresses returned for lowered names must stay valid
};

int give_size(std::size_t* bytes, std::size_t size) {
  *bytes = size;
  return 0;
}

int give_text(char* target, const char* text) {
  std::strcpy(target, text);
  return 0;
}

}  // namespace

extern "C" {

int nvrtcVersion(int* major, int* minor) {
  *major = kMajor;
  *minor = kMinor;
  return 0;
}

const char* nvrtcGetErrorString(int result) {
  return result == 0 ? "NVRTC_SUCCESS" : "NVRTC_ERROR";
}

int nvrtcCreateProgram(StepProgram** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  *program = new StepProgram;
  return 0;
}

int nvrtcDestroyProgram(StepProgram** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcAddNameExpression(StepProgram* program, const char* name) {
  program->names.emplace(name, name);
  return 0;
}

int nvrtcCompileProgram(StepProgram*, int, const char* const*) {
  return 0;
}

int nvrtcGetLoweredName(StepProgram* program, const char* name, const char** lowered) {
  *lowered = program->names.emplace(name, name).first->second.c_str();
  return 0;
}

int nvrtcGetPTXSize(StepProgram*, std::size_t* bytes) {
  return give_size(bytes, sizeof kCode);
}
int nvrtcGetPTX(StepProgram*, char* code) {
  return give_text(code, kCode);
}
int nvrtcGetCUBINSize(StepProgram*, std::size_t* bytes) {
  return give_size(bytes, sizeof kCode);
}
int nvrtcGetCUBIN(StepProgram*, char* code) {
  return give_text(code, kCode);
}
int nvrtcGetProgramLogSize(StepProgram*, std::size_t* bytes) {
  return give_size(bytes, 1);
}
int nvrtcGetProgramLog(StepProgram*, char* log) {
  return give_text(log, "");
}

}  // extern "C"
