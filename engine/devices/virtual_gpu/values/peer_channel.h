#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/descriptor.h"

namespace offprof {

/// Message of a rank to the others of a communicator about one of its operations.
struct PeerMessage {
  std::string what;          ///< the operation, for comparison: `all_reduce of 8 bytes of int64, sum`
  std::string site;          ///< where the program called it; empty: not known
  std::vector<char> values;  ///< the rank's input; empty: not known

  bool operator==(const PeerMessage&) const = default;
};

/// How long a rank waits for another one.
struct PeerPatience {
  std::chrono::seconds time{0};
  int signals = -1;  ///< file of the numbers of signals that have come, which is not blocking; -1: none
};

/// How the ranks of a job exchange small values, or compare their collectives at least.
struct PeerSettings {
  std::string folder;  ///< the same for all ranks; exists
  int rank = 0;        ///< of this process in the job
  /// nullopt: the ranks do not run at the same time, so that they compare their collectives only.
  std::optional<PeerPatience> patience;
  std::function<std::string()>
      call_site;  ///< returns where the program is: `train.py:12`; called without locks
};

/// Messages between ranks of a communicator that are processes of this machine. Each rank appends to a file
/// of its own and reads those of the others, so nobody waits to say something. Not thread-safe.
class PeerChannel {
 public:
  /// `name` is the same for all ranks, and no other channel in the folder has it. What this rank has said
  /// before, as another process, is forgotten. Throws Error (environment) if the file cannot be written.
  PeerChannel(const PeerSettings& settings, const std::string& name, int rank, int ranks);

  /// Says the next message. Returns its number, from 0.
  std::size_t say(const PeerMessage& message);
  /// Returns true if that rank has said the message of that number.
  bool has_said(int rank, std::size_t number);
  /// Waits for that message. Throws Error (environment) if the rank's process has ended, if it does not come
  /// within the patience, or if SIGINT or SIGTERM comes. `call` names in the error what needs the message:
  /// `all_reduce of 8 bytes at train.py:12`; empty: not known.
  PeerMessage hear(int rank, std::size_t number, const std::string& call = {});
  /// Returns what messages to the user call that rank: `rank 5`, as the job counts, or `rank 1 of the
  /// communicator` if it has said nothing yet.
  std::string name_of(int rank);

 private:
  /// A rank's process.
  struct Peer {
    pid_t process = 0;
    int rank = 0;  ///< in the job
  };
  struct Reader {
    std::optional<Descriptor> file;  ///< nullopt: the rank has not begun one
    std::vector<off_t> offsets;      ///< of the messages that are there
    off_t end = 0;
  };

  std::string path_of(int rank) const;
  void append(const PeerMessage& message);
  /// Reads how many complete messages there are, until there is the one of that index in the file.
  bool read_until(int rank, std::size_t index);
  PeerMessage message_at(const Reader& reader, std::size_t index) const;
  std::optional<Peer> peer(int rank);
  bool has_ended(int rank);

  std::string prefix_;
  int rank_;
  PeerPatience patience_;
  Descriptor own_;
  std::size_t said_ = 0;
  std::vector<Reader> readers_;  ///< by rank
};

}  // namespace offprof
