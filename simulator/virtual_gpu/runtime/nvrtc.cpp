#include <cstddef>
#include <cstring>
#include <map>
#include <string>

// The compiler of kernels that PyTorch writes while it runs (its jiterator). What comes out is the name of
// the kernel, for the driver's stand-in to launch.

namespace {

// A minor version that no compiler has: kernels of these must not be taken for those of a real one, nor from
// them, where PyTorch keeps compiled kernels on disk.
constexpr int kMajor = 13;
constexpr int kMinor = 9999;

constexpr char kCode[] = "no code";

struct Program {
  std::map<std::string, std::string> names;  // what a lowered name is asked for must stay where it is
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

int nvrtcCreateProgram(Program** program, const char*, const char*, int, const char* const*,
                       const char* const*) {
  *program = new Program;
  return 0;
}

int nvrtcDestroyProgram(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

int nvrtcAddNameExpression(Program* program, const char* name) {
  program->names.emplace(name, name);
  return 0;
}

int nvrtcCompileProgram(Program*, int, const char* const*) {
  return 0;
}

int nvrtcGetLoweredName(Program* program, const char* name, const char** lowered) {
  *lowered = program->names.emplace(name, name).first->second.c_str();
  return 0;
}

int nvrtcGetPTXSize(Program*, std::size_t* bytes) {
  return give_size(bytes, sizeof kCode);
}
int nvrtcGetPTX(Program*, char* code) {
  return give_text(code, kCode);
}
int nvrtcGetCUBINSize(Program*, std::size_t* bytes) {
  return give_size(bytes, sizeof kCode);
}
int nvrtcGetCUBIN(Program*, char* code) {
  return give_text(code, kCode);
}
int nvrtcGetProgramLogSize(Program*, std::size_t* bytes) {
  return give_size(bytes, 1);
}
int nvrtcGetProgramLog(Program*, char* log) {
  return give_text(log, "");
}

}  // extern "C"
