#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/device_disk.h"
#include "engine/plugin.h"
#include "traces/link.h"
#include "traces/policy.h"
#include "traces/trace.h"

namespace offprof {

/// `2GB/s`, or `2GB/s,3GB/s` where reading is another matter. Throws Error (input).
DiskLink parse_disk_speed(const std::string& text);

/// `--disk-bandwidth`. The target must outlive the parse.
CLI::Option* add_disk_bandwidth_option(CLI::App& app, std::optional<DiskLink>& speed,
                                       const std::string& what);

/// `a disk` or `compressed memory`.
std::string describe(const DiskLink& disk);
/// The flag of `run` that gives it such a one.
const char* disk_flag(bool is_compressed);

/// The disk that a simulation of the policy assumes: the one `given`, else the trace's. Throws Error (input)
/// where something uses one of which nobody says how fast it is.
DiskLink disk_to_assume(const std::optional<DiskLink>& given, const Trace& trace, const Policy& policy);

/// Adds to the words of a `run` what a policy's tensors and the trace's weights need of a disk, unless they
/// are told of one: its speed where it is modelled, else the current folder.
void add_disk_words(std::vector<std::string>& words, const Trace& trace, const Policy& policy,
                    const DiskLink& disk);

/// The flags of `run` that give it a disk: `--disk`, `--disk-checksums`, `--compress`,
/// `--disk-bandwidth`.
class DiskOptions {
 public:
  /// The object must outlive the parse.
  void add_to(CLI::App& app);

  /// nullopt: no disk. `device`: as RunRequest has it. Throws Error (input): flags that do not go with it, or
  /// with the policy.
  std::optional<DiskRequest> request(const std::string& device, const Policy& policy) const;

 private:
  void refuse_on_virtual(bool compressed) const;
  void refuse_with_compression(const Policy& policy) const;

  std::string folder_;
  bool checksums_ = false, compressed_ = false;
  std::optional<DiskLink> speed_;
};

/// Weights on the disk of a GPU share that of the policy's tensors, which their folder may be said to be;
/// those of the host have a file of their own. `request.device`: as RunRequest has it. Throws Error (input):
/// there is no folder for them, or two.
void share_disk_with_weights(RunRequest& request);

}  // namespace offprof
