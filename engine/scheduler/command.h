#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <variant>

#include "traces/base/units.h"

namespace offprof {

/// Number of a saved tensor of the step, counted from 0 in the order in which autograd saved them.
using SavedId = std::int32_t;
/// Number of a copy, counted from 0 in the order in which the step created them.
using CopyId = std::int32_t;

/// Fields of the commands on a saved tensor that stays on the device as it is.
struct KeptCommand {
  SavedId tensor = -1;
  Bytes bytes = 0;  ///< size of the tensor

  bool operator==(const KeptCommand&) const = default;
};

/// Fields of the commands on a copy.
struct CopyCommand {
  SavedId tensor = -1;  ///< the saved tensor that the copy is of; for a shared copy, the first
  CopyId copy = -1;
  Bytes bytes = 0;  ///< size of the copy, unless the command says otherwise

  bool operator==(const CopyCommand&) const = default;
};

/// Holds the saved tensor on the device.
struct Keep : KeptCommand {
  static constexpr std::string_view kName = "keep";
};

/// Drops the hold of Keep.
struct ReleaseKept : KeptCommand {
  static constexpr std::string_view kName = "release_kept";
};

/// Takes host memory and starts the copy from the device into it. Holds the device storage until Drop. It is
/// the first command of a copy, except for Encode and TakeDisk.
struct CopyOut : CopyCommand {
  static constexpr std::string_view kName = "copy_out";
};

/// Lets the compute stream wait for the copy out.
struct WaitOut : CopyCommand {
  static constexpr std::string_view kName = "wait_out";
};

/// Drops the hold on the copy's device storage. `bytes`: size of that storage.
struct Drop : CopyCommand {
  static constexpr std::string_view kName = "drop";
};

/// Takes device memory and starts the copy from host memory into it, after a read from the disk that is in
/// progress. Holds the device storage until Drop.
struct CopyIn : CopyCommand {
  static constexpr std::string_view kName = "copy_in";
};

/// Lets the compute stream wait for the copy in.
struct WaitIn : CopyCommand {
  static constexpr std::string_view kName = "wait_in";
};

/// Frees the copy's host memory. No transfer uses that memory any more.
struct FreeHost : CopyCommand {
  static constexpr std::string_view kName = "free_host";
};

/// Creates a copy: encodes the tensor's storage. The copy's storage is the encoded one, which is held until
/// Drop or Decode. `bytes`: size of the encoded storage.
struct Encode : CopyCommand {
  static constexpr std::string_view kName = "encode";
  std::int32_t transform = -1;  ///< see ResolvedPlacement::transform

  bool operator==(const Encode&) const = default;
};

/// Decodes the copy into a new storage, which becomes the copy's storage. Drops the encoded one. `bytes`:
/// size of the new storage.
struct Decode : CopyCommand {
  static constexpr std::string_view kName = "decode";
};

/// Creates a copy without a storage: the tensor is held nowhere until Recompute.
struct DropForRecompute : CopyCommand {
  static constexpr std::string_view kName = "drop_for_recompute";
  SavedId recomputation = -1;  ///< see Recomputation::tensor

  bool operator==(const DropForRecompute&) const = default;
};

/// Recomputes the tensor into a new storage, which becomes the copy's storage. All sources of the
/// recomputation are on the device.
struct Recompute : CopyCommand {
  static constexpr std::string_view kName = "recompute";
};

/// Takes the copy's space on the disk. It comes before any other command of the copy.
struct TakeDisk : CopyCommand {
  static constexpr std::string_view kName = "take_disk";
};

/// Starts writing the copy from its host memory to the disk, after its copy out.
struct WriteDisk : CopyCommand {
  static constexpr std::string_view kName = "write_disk";
};

/// Lets the host wait for the write. After that the host memory may be freed.
struct WaitWrite : CopyCommand {
  static constexpr std::string_view kName = "wait_write";
};

/// Takes host memory and starts reading the copy from the disk into it.
struct ReadDisk : CopyCommand {
  static constexpr std::string_view kName = "read_disk";
};

/// Lets the host wait for the read. It is issued only if no CopyIn waited for it.
struct WaitRead : CopyCommand {
  static constexpr std::string_view kName = "wait_read";
};

/// Frees the copy's space on the disk.
struct FreeDisk : CopyCommand {
  static constexpr std::string_view kName = "free_disk";
};

/// A command from a scheduler to an executor, which carries it out at that point of program order. Commands
/// are values: they refer to nothing and may be kept after the step. Two steps that decide alike have equal
/// commands.
using Command =
    std::variant<Keep, ReleaseKept, CopyOut, WaitOut, Drop, CopyIn, WaitIn, FreeHost, Encode, Decode,
                 DropForRecompute, Recompute, TakeDisk, WriteDisk, WaitWrite, ReadDisk, WaitRead, FreeDisk>;

/// Commands that an executor may refuse: the device has no memory for them now, or the disk is full.
using RefusableCommand = std::variant<CopyIn, Decode, Recompute, TakeDisk>;

/// Satisfied by exactly these commands: lets a visitor treat several of them in one function, and still fail
/// to compile if one is missing.
template <typename Each, typename... Commands>
concept OneOf = (std::same_as<Each, Commands> || ...);

inline Command as_command(const RefusableCommand& command) {
  return std::visit([](const auto& each) { return Command(each); }, command);
}

/// Returns the name of a command in the log, such as `keep`, `copy_out` or `wait_in`.
inline std::string_view name_of(const Command& command) {
  return std::visit([](const auto& each) { return each.kName; }, command);
}

/// Returns the fields of a command on a copy; nullptr for Keep and ReleaseKept. They belong to `command`.
inline const CopyCommand* copy_fields(const Command& command) {
  return std::visit(
      []<typename Each>(const Each& each) -> const CopyCommand* {
        if constexpr (std::is_base_of_v<CopyCommand, Each>) return &each;
        return nullptr;
      },
      command);
}

}  // namespace offprof
