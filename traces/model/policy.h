#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/policy_rule.h"
#include "traces/model/scheduler_kind.h"

namespace offprof {

/// Large enough for a disk that has several transfers of tens of MiB in flight.
inline constexpr Bytes kDefaultDiskBuffer = 256 * kMiB;

/// All settings that decide what leaves the device and when. It is a value type and the content of
/// `policy.json`.
struct Policy {
  std::string name = "offload";  ///< preset that it came from, or `tuned`
  SchedulerKind scheduler = SchedulerKind::kOffload;
  /// Saved tensors of at least this many bytes are offloaded (kOffload: bytes of the storage; kTrl: bytes of
  /// the tensor). nullopt: no tensor is offloaded.
  std::optional<Bytes> threshold_bytes = 0;
  /// Plan: of the tensors above the threshold, only these are offloaded. Sorted numbers of saved tensors in
  /// the order in which autograd saves them. A plan is valid for one model and its inputs. nullopt: all.
  /// kOffload only.
  std::optional<std::vector<std::int32_t>> tensors{};
  /// Forward stash: at most this many offloaded tensors, and this many bytes of them, keep their device copy.
  /// nullopt: no limit of that kind; if both are nullopt there is no stash. kTrl only reads the count, which
  /// it applies to saved-tensor ids.
  std::optional<std::int64_t> stash_count;
  std::optional<Bytes> stash_bytes;
  /// Prefetch window in backward: bytes of reloads that are issued ahead of need. 0: on demand.
  Bytes prefetch_bytes = 0;
  /// Number of copy streams: 2, one per direction, or 1 for both directions. kTrl always uses 1.
  int copy_streams = 2;
  /// Cap on the host memory of offloaded tensors. Tensors for which it has no room stay on the device.
  /// nullopt: no cap.
  std::optional<Bytes> host_memory_bytes{};
  /// Cap on the bytes of tensors that rules may place on a disk or compress. Tensors for which it has no room
  /// go to host memory or stay on the device. nullopt: no cap.
  std::optional<Bytes> disk_memory_bytes{};
  /// Host memory for transfers to and from the disk, beside `host_memory_bytes`. A tensor larger than this is
  /// transferred alone.
  Bytes disk_buffer_bytes = kDefaultDiskBuffer;
  /// The first rule that matches a movable saved tensor decides its placement; with a plan, a recompute rule
  /// decides only for tensors that can be recomputed. If none decides, the threshold and the plan do. kTrl:
  /// rules match every saved tensor, and can only place it on the device.
  std::vector<PolicyRule> rules{};

  bool operator==(const Policy&) const = default;
};

/// Returns a preset: `keep` (offloads nothing), `offload` (offloads all movable tensors, reloads on demand),
/// `trl` (TRL's OffloadActivations with its defaults) or `trl-trainer` (TRL's trainers: `trl`, but the
/// tensors that the module `lm_head` saves stay on the device). Throws Error (input) for another name.
Policy preset_policy(const std::string& name);

/// Returns the names of the presets, in the order in which texts list them.
std::vector<std::string> preset_names();

/// Returns true if a rule places tensors on a disk or compresses them instead.
bool uses_disk(const Policy& policy);

/// Returns true if a rule compresses tensors; then no rule places tensors on a disk.
bool compresses(const Policy& policy);

/// Returns true if copies in and copies out share one stream.
bool has_one_copy_stream(const Policy& policy);

/// Describes the policy for a person: `threshold 64 KiB, stash 3, prefetch 1 MiB`.
std::string describe(const Policy& policy);

}  // namespace offprof
