#pragma once

#include <string>

namespace offprof {

/// Returns the path of the submodule whose method runs on this thread: `blocks.layer0.mlp`. Empty: a method
/// of the model itself runs, or none does.
std::string current_module_path();

/// Sets the path of a submodule that runs in a separate interpreter, which does not know the path to it.
/// While this object lives, paths on this thread begin with the submodule's path.
class ModulePathScope {
 public:
  /// `path` must outlive this object. `is_running`: the submodule's interpreter is running; else it has not
  /// started yet.
  ModulePathScope(const std::string& path, bool is_running);
  ~ModulePathScope();
  ModulePathScope(const ModulePathScope&) = delete;
  ModulePathScope& operator=(const ModulePathScope&) = delete;

 private:
  const std::string* path_before_;
  bool was_running_;
};

}  // namespace offprof
