#pragma once

#include <string>

namespace offprof {

/// `blocks.layer0.mlp`, of the submodule whose method runs on this thread; empty: of the model itself, or
/// none runs.
std::string current_module_path();

/// A submodule that is run by an interpreter of its own, which knows nothing of the path that leads to it.
/// While it lives, paths on this thread begin with that of the submodule.
class ModulePathScope {
 public:
  /// `path` must outlive it. `is_running`: its interpreter runs; else it is yet to be started.
  ModulePathScope(const std::string& path, bool is_running);
  ~ModulePathScope();
  ModulePathScope(const ModulePathScope&) = delete;
  ModulePathScope& operator=(const ModulePathScope&) = delete;

 private:
  const std::string* path_before_;
  bool was_running_;
};

}  // namespace offprof
