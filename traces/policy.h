#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/policy_rule.h"
#include "traces/units.h"

namespace offprof {

/// Which decision rules run. Each is one scheduler of engine/schedule.
enum class SchedulerKind { kOffload, kTrl };

/// Deep enough for a disk that keeps some transfers of tens of MiB under way.
inline constexpr Bytes kDefaultDiskBuffer = 256 * kMiB;

/// Everything that decides what leaves the device and when. A value: what a `policy.json` holds.
struct Policy {
  std::string name = "offload";  ///< the preset it came from, or `tuned`
  SchedulerKind scheduler = SchedulerKind::kOffload;
  /// Saved tensors of at least so many bytes are offloaded (kOffload: bytes of the storage; kTrl: of the
  /// tensor). nullopt: nothing is.
  std::optional<Bytes> threshold_bytes = 0;
  /// A plan: of the tensors that the threshold lets go only these are offloaded, numbered in the order in
  /// which autograd saves them, sorted. It is made for one model and its inputs. nullopt: all. kOffload only.
  std::optional<std::vector<std::int32_t>> tensors{};
  /// Forward stash: so many offloaded tensors, and so many bytes of them, keep their device copy. Each
  /// nullopt: no limit of that kind, but where both are nullopt there is no stash. kTrl reads the count only,
  /// in saved-tensor ids.
  std::optional<std::int64_t> stash_count;
  std::optional<Bytes> stash_bytes;
  /// Backward window: reloads issued ahead of need, in bytes. 0: on demand.
  Bytes prefetch_bytes = 0;
  /// Side streams of the copies: 2, one for each direction; 1, which carries both, as kTrl always has it.
  int copy_streams = 2;
  /// Cap of the host memory that offloaded tensors may take; beyond it tensors are kept. nullopt: none.
  std::optional<Bytes> host_memory_bytes{};
  /// Cap of what rules may place on a disk or compress, in bytes of tensors; beyond it host memory takes
  /// them, or they stay. nullopt: none.
  std::optional<Bytes> disk_memory_bytes{};
  /// Host memory on the way to the disk and back, beside `host_memory_bytes`; a larger tensor has it alone.
  Bytes disk_buffer_bytes = kDefaultDiskBuffer;
  /// The first rule that matches a saved tensor which may move decides what becomes of it; where none does,
  /// the threshold and the plan decide. kOffload only.
  std::vector<PolicyRule> rules{};

  bool operator==(const Policy&) const = default;
};

/// `keep` (nothing is offloaded), `offload` (all that may move leaves when saved, comes back on demand) or
/// `trl` (TRL's OffloadActivations at its defaults: 1024 bytes, forward stash of 5 ids). Throws Error for
/// another name.
Policy preset_policy(const std::string& name);

/// Whether a rule places tensors on a disk, or has them compressed in its place.
bool uses_disk(const Policy& policy);

/// Whether a rule has tensors compressed; then none places tensors on a disk.
bool compresses(const Policy& policy);

/// Whether copies in queue behind copies out.
bool has_one_copy_stream(const Policy& policy);

/// `threshold 64 KiB, stash 3, prefetch 1 MiB`.
std::string describe(const Policy& policy);

}  // namespace offprof
