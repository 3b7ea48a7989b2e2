#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/base/descriptor.h"

namespace offprof {

/// Text of the last message of a rank in a communicator.
inline constexpr std::string_view kNothingMore = "nothing more";

/// Message of a rank to the others of a communicator about one of its operations.
struct PeerMessage {
  std::string what;          ///< the operation, for comparison: `all_reduce of 8 bytes of int64, sum`
  std::string site;          ///< where the program called it; empty: not known
  std::vector<char> values;  ///< the rank's input; empty: not known

  bool operator==(const PeerMessage&) const = default;
};

/// Returns ` at train.py:12`, or nothing if the place is not known.
std::string at_site(const std::string& site);

/// Process that writes a file of messages.
struct PeerProcess {
  pid_t process = 0;
  int rank = 0;   ///< in the job
  int ranks = 0;  ///< of the job

  std::string text() const;
};

/// Returns the name of a rank's file of messages to all others of the communicator. `key` names the
/// communicator, `rank` counts in it.
std::string peer_file_name(const std::string& key, int rank);

/// Ends of a line of messages from one rank of a communicator to another. Each end has a file: of what is
/// sent, and of what is received.
inline constexpr int kSender = 0, kReceiver = 1;

/// Returns the name of the file of an end of a line.
std::string peer_file_name(const std::string& key, int from, int to, int end);

/// Returns the bytes of a message in a file.
std::string encode(const PeerMessage& message);

/// Reads the file of messages of another process, which may be writing it. Its first message tells the
/// process. Not thread-safe.
class PeerFile {
 public:
  /// The file does not have to exist yet.
  explicit PeerFile(std::string path) : path_(std::move(path)) {}

  /// Returns true if the message of that number is there, from 0.
  bool has(std::size_t number);
  /// Returns a message that is there. Throws Error (environment) if it cannot be read.
  PeerMessage at(std::size_t number);
  /// Returns the process that writes the file; nullopt: it has not begun.
  std::optional<PeerProcess> process();

 private:
  bool read_until(std::size_t index);
  PeerMessage message_at(std::size_t index) const;

  std::string path_;
  std::optional<Descriptor> file_;  ///< nullopt: the rank has not begun one
  std::vector<off_t> offsets_;      ///< of the messages that are there
  off_t end_ = 0;
};

}  // namespace offprof
