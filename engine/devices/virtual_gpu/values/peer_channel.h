#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
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

/// Messages between ranks of a communicator that are processes of this machine. Each rank appends to a file
/// of its own and reads those of the others, so nobody waits to say something. Not thread-safe.
class PeerChannel {
 public:
  /// `folder` exists and is the same for all ranks, and so is `name`, which no other channel in the folder
  /// has. What this rank has said before, as another process, is forgotten. Throws Error (environment) if the
  /// file cannot be written.
  PeerChannel(std::string folder, const std::string& name, int rank, int ranks, PeerPatience patience);

  /// Says the next message. Returns its number, from 0.
  std::size_t say(const PeerMessage& message);
  /// Returns true if that rank has said the message of that number.
  bool has_said(int rank, std::size_t number);
  /// Waits for that message. Throws Error (environment) if the rank's process has ended, if it does not come
  /// within the patience, or if SIGINT or SIGTERM comes. `call` names in the error what needs the message:
  /// `all_reduce of 8 bytes at train.py:12`; empty: not known.
  PeerMessage hear(int rank, std::size_t number, const std::string& call = {});

 private:
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
  bool has_ended(int rank);

  std::string prefix_;
  int rank_;
  PeerPatience patience_;
  Descriptor own_;
  std::size_t said_ = 0;
  std::vector<Reader> readers_;  ///< by rank
};

}  // namespace offprof
