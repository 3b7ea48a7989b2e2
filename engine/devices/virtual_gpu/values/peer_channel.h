#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/values/peer_file.h"
#include "traces/base/descriptor.h"

namespace offprof {

/// How long a rank waits for another one.
struct PeerPatience {
  std::chrono::seconds time{0};
  int signals = -1;  ///< file of the numbers of signals that have come, which is not blocking; -1: none
};

/// How the ranks of a job exchange small values, or compare their collectives at least.
struct PeerSettings {
  std::string folder;  ///< the same for all ranks; exists
  int rank = 0;        ///< of this process in the job
  int ranks = 1;       ///< of the job
  /// nullopt: the ranks do not run at the same time, so that they compare their collectives only.
  std::optional<PeerPatience> patience;
  std::function<std::string()>
      call_site;  ///< returns where the program is: `train.py:12`; called without locks
};

/// One who talks in a channel.
struct PeerParty {
  std::string file;  ///< name in the folder; each party of each channel has another
  int rank = 0;      ///< in the communicator
};

/// Messages between processes of this machine that are ranks of a communicator. Each party appends to a file
/// of its own and reads those of the others, so nobody waits to say something. Not thread-safe.
class PeerChannel {
 public:
  /// `own` is the number of this process among the parties. What it has said before, as another process, is
  /// forgotten. Throws Error (environment) if the file cannot be written.
  PeerChannel(const PeerSettings& settings, std::vector<PeerParty> parties, int own);

  /// Says the next message. Returns its number, from 0.
  std::size_t say(const PeerMessage& message);
  /// Returns true if that party has said the message of that number.
  bool has_said(int party, std::size_t number);
  /// Waits for that message. Throws Error (environment) if the party's process has ended, if it does not come
  /// within the patience, or if SIGINT or SIGTERM comes. `call` names in the error what needs the message:
  /// `all_reduce of 8 bytes at train.py:12`; empty: not known.
  PeerMessage hear(int party, std::size_t number, const std::string& call = {});
  /// Returns what messages to the user call that party: `rank 5`, as the job counts, or `rank 1 of the
  /// communicator` if it has said nothing yet.
  std::string name_of(int party);

 private:
  void append(const PeerMessage& message);
  PeerFile& file_of(int party) { return files_.at(static_cast<std::size_t>(party)); }
  bool has_ended(int party);

  std::vector<PeerParty> parties_;
  int self_;  ///< number of this process among the parties
  std::string own_path_;
  PeerPatience patience_;
  Descriptor own_;
  std::size_t said_ = 0;
  std::vector<PeerFile> files_;  ///< by party
};

}  // namespace offprof
