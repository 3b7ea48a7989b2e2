#pragma once

#include <CLI/App.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/disk/device_disk.h"
#include "profiler/plugin/plugin.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

/// Parses `2GB/s`, or `2GB/s,3GB/s` if the read speed differs from the write speed. Throws Error (input).
DiskLink parse_disk_speed(const std::string& text);

/// Adds `--disk-bandwidth`. `speed` must outlive the parse.
CLI::Option* add_disk_bandwidth_option(CLI::App& app, std::optional<DiskLink>& speed,
                                       const std::string& what);

/// Returns `a disk` or `compressed memory`.
std::string describe(const DiskLink& disk);
/// Returns the flag of `run` that provides compressed memory or a disk.
const char* disk_flag(bool is_compressed);

/// Returns the disk that a simulation of the policy assumes: `given`, or else the trace's disk. Throws Error
/// (input) if a disk is used but its speed is unknown.
DiskLink disk_to_assume(const std::optional<DiskLink>& given, const Trace& trace, const Policy& policy);

/// Adds to the words of a `run` the disk flags that the policy's tensors and the trace's offloaded parameters
/// need, unless the words already contain them. On a virtual GPU this is the disk's speed, otherwise the
/// current folder.
void add_disk_words(std::vector<std::string>& words, const Trace& trace, const Policy& policy,
                    const DiskLink& disk);

/// The flags of `run` that configure a disk: `--disk`, `--disk-checksums`, `--compress`, `--disk-bandwidth`.
class DiskOptions {
 public:
  /// This object must outlive the parse.
  void add_to(CLI::App& app);

  /// Returns nullopt if there is no disk. `device` has the format of RunRequest. Throws Error (input) if
  /// flags contradict each other, the device or the policy.
  std::optional<DiskRequest> request(const std::string& device, const Policy& policy) const;

 private:
  void refuse_on_virtual(bool compressed) const;
  void refuse_with_compression(const Policy& policy) const;

  std::string folder_;
  bool checksums_ = false, compressed_ = false;
  std::optional<DiskLink> speed_;
};

/// Prepares the disk for offloaded parameters. On a GPU, parameters use the same disk as the policy's
/// tensors, so `--offload-params-dir` may name that disk's folder; on the host they have a file of their own.
/// `request.device` has the format of RunRequest. Throws Error (input) if no folder is given, or if two
/// different folders are given.
void share_disk_with_parameters(RunRequest& request);

}  // namespace offprof
