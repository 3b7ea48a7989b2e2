#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/values/collective_call.h"
#include "engine/devices/virtual_gpu/values/peer_channel.h"
#include "engine/devices/virtual_gpu/values/small_values.h"

namespace offprof {

/// How the ranks of a job that run at the same time, on this machine, exchange small values.
struct PeerSettings {
  std::string folder;  ///< the same for all ranks; exists
  std::chrono::seconds patience{0};
  std::function<std::string()>
      call_site;  ///< returns where the program is: `train.py:12`; called without locks
};

/// A rank's place in a part of a communicator.
struct PlaceInPart {
  int rank = 0, ranks = 1;
};

/// Exchanges messages with the other ranks of a communicator: which collectives each rank calls, and small
/// values. Not thread-safe.
class PeerTalk : public std::enable_shared_from_this<PeerTalk> {
 public:
  /// `key` names the communicator, equally on all ranks.
  PeerTalk(PeerSettings settings, std::string key, int rank, int ranks);

  /// Tells the others about a call, compares it with theirs, as far as they have come, and lets `values` know
  /// what the call brings: it waits for the others only where that is read. Throws Error (input) if the
  /// ranks' calls do not match.
  void call(const CollectiveCall& call, const std::string& site, SmallValues& values);

  /// Waits for all ranks. Returns this rank's place among those with the same color, in the order of their
  /// keys.
  PlaceInPart split(int color, int key);
  /// Returns the key of the communicator of that color after the last split.
  std::string key_of_part(int color) const;

 private:
  /// Channel between two ranks of the communicator, in one direction.
  struct Line {
    std::unique_ptr<PeerChannel> channel;
    std::size_t messages = 0;
  };

  void send(const CollectiveCall& call, const std::string& site, SmallValues& values);
  void receive(const CollectiveCall& call, const std::string& site, SmallValues& values);
  Line& line(int from, int to);
  std::vector<char> hear_sent(const CollectiveCall& call, const std::string& site, int rank,
                              std::size_t number);
  std::vector<char> hear_all(const CollectiveCall& call, std::size_t number);
  void compare();
  void refuse_other_call(std::size_t number, int rank, const PeerMessage& theirs) const;

  PeerSettings settings_;
  std::string key_;
  int rank_, ranks_;
  PeerChannel channel_;
  std::vector<PeerMessage> own_;       ///< without values
  std::vector<std::size_t> compared_;  ///< by rank: number of messages
  std::map<std::pair<int, int>, Line> lines_;
  int splits_ = 0;
};

}  // namespace offprof
