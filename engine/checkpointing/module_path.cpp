#include "engine/checkpointing/module_path.h"

#include <torch/csrc/jit/runtime/interpreter.h>

#include <utility>
#include <vector>

namespace offprof {
namespace {

thread_local const std::string* scope_path = nullptr;
thread_local bool scope_is_running = false;

void add_level(std::string& path, const std::string& name) {
  path += (path.empty() ? "" : ".") + name;
}

}  // namespace

ModulePathScope::ModulePathScope(const std::string& path, bool is_running)
    : path_before_(std::exchange(scope_path, &path)),
      was_running_(std::exchange(scope_is_running, is_running)) {}

ModulePathScope::~ModulePathScope() {
  scope_path = path_before_;
  scope_is_running = was_running_;
}

/// LibTorch names each level as `layer0(Block)::forward`, the first `TOP(Model)::forward`, and a call of a
/// module's own method `SELF(Block)::helper`.
std::string current_module_path() {
  std::string path = scope_path == nullptr ? std::string() : *scope_path;
  if (scope_path != nullptr && !scope_is_running) return path;
  for (const std::string& level : torch::jit::currentModuleHierarchy()) {
    const std::string name = level.substr(0, level.find('('));
    if (name == "TOP" || name == "SELF" || name.starts_with("UNKNOWN")) continue;
    add_level(path, name);
  }
  return path;
}

}  // namespace offprof
