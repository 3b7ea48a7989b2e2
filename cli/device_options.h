#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/context.h"
#include "simulator/virtual_gpu/virtual_gpu.h"
#include "traces/link.h"

namespace offprof {

/// The flags that choose where to train: `--device`, and for a virtual GPU `--kernel-times` and
/// `--check-streams`.
class DeviceOptions {
 public:
  /// The object must outlive the parse.
  void add_to(CLI::App& app);

  /// The device as RunRequest has it, `auto` resolved. Opens the virtual GPU where it is one, its link no
  /// faster than `link_cap`, so call it before the engine is opened, once. Throws Error: no such device or
  /// profile (input), libraries that are missing (environment).
  std::string open(Context& context, const std::optional<Link>& link_cap);

  /// As `--device NAME` does.
  void choose(const std::string& device);

  bool is_auto() const { return device_ == "auto"; }
  bool checks_streams() const { return checks_streams_; }
  /// The file of --kernel-times, without its folder; nullopt: none is given.
  std::optional<std::string> kernel_times() const;
  /// What the check of stream order has found; empty where there was none.
  std::vector<StreamHazard> take_hazards() const;

 private:
  std::string open_virtual(Context& context, const std::optional<Link>& link_cap);

  std::string device_ = "auto";
  std::string kernel_times_path_;
  bool checks_streams_ = false;
  VirtualGpu* gpu_ = nullptr;
};

}  // namespace offprof
