#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/base/context.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "profiler/plugin/script_io.h"
#include "traces/model/link.h"

namespace offprof {

/// Throws Error (input) if `--device` would not take the device, or if it is a virtual GPU whose profile does
/// not exist.
void check_device(const std::string& device);

/// The flags that choose the device: `--device`, and for a virtual GPU `--kernel-times` and
/// `--check-streams`.
class DeviceOptions {
 public:
  /// This object must outlive the parse.
  void add_to(CLI::App& app);

  /// Returns the device in the format of RunRequest, with `auto` resolved. If the device is a virtual GPU,
  /// opens it with a link no faster than `link_cap`. Call it once, before the engine is opened. Throws Error
  /// if there is no such device or profile (input), or if libraries are missing (environment).
  std::string open(Context& context, const std::optional<Link>& link_cap);

  /// Returns the same, and opens nothing: a Python process will open the device. Sets `gpu` if it is a
  /// virtual GPU. Throws the same errors.
  std::string open_in_script(const std::optional<Link>& link_cap, std::optional<ScriptGpu>& gpu) const;

  /// Selects a device as `--device NAME` does.
  void choose(const std::string& device);

  bool is_auto() const { return device_ == "auto"; }
  bool checks_streams() const { return checks_streams_; }
  /// Returns the file name of --kernel-times without its folder, or nullopt if the flag is absent.
  std::optional<std::string> kernel_times() const;
  /// Returns the races that the stream race checker found; empty if the checker did not run.
  std::vector<StreamHazard> take_hazards() const;

 private:
  std::string resolved(const std::optional<Link>& link_cap) const;
  std::string open_virtual(Context& context, const std::optional<Link>& link_cap);

  std::string device_ = "auto";
  std::string kernel_times_path_;
  bool checks_streams_ = false;
  VirtualGpu* gpu_ = nullptr;
};

}  // namespace offprof
