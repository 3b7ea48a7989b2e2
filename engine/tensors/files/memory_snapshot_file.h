#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Maximum size of a memory snapshot.
inline constexpr std::size_t kMostSnapshotBytes = std::size_t{1} << 30;

/// Entry of the trace of a device, or a block of memory at its end.
struct SnapshotItem {
  std::string action{};  ///< of an entry: `alloc`, `free_completed`, ...; of a block: its state
  std::int64_t address = 0;
  std::int64_t bytes = 0;    ///< requested bytes; of an entry about a segment its bytes
  std::int64_t time_us = 0;  ///< of an entry
  /// The innermost frame of the program, as `function (file.py:12)`; without one, that of a library; empty:
  /// the snapshot has no frames.
  std::string place{};
};

/// Memory of one device in a snapshot of torch.cuda.memory._dump_snapshot.
struct DeviceSnapshot {
  int device = 0;
  std::vector<SnapshotItem> entries{};  ///< in the order of the run
  std::vector<SnapshotItem> blocks{};   ///< blocks in use at the end
  std::int64_t reserved_bytes = 0;      ///< of all segments at the end
};

/// Reads a snapshot, and returns the device with the most entries, or else with the most memory. A pickle is
/// a program; this function runs none, and accepts only dictionaries, lists, tuples, numbers and texts.
/// `name` names the file in errors. Throws Error (input) if the pickle is damaged, has anything else, or is
/// no snapshot.
DeviceSnapshot read_memory_snapshot(std::string_view pickle, const std::string& name);

}  // namespace offprof
