#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/values/collective_call.h"
#include "engine/devices/virtual_gpu/values/peer_channel.h"
#include "engine/devices/virtual_gpu/values/small_values.h"

namespace offprof {

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

  /// Tells a call to ranks that run later, and compares it with those of ranks that ran before. Returns what
  /// such a rank broadcasts or sends; empty: not known. Throws Error (input) if the ranks' calls do not
  /// match.
  std::vector<char> call_alone(const CollectiveCall& call, const std::string& site, SmallValues& values);

  /// Tells the others that this rank calls no more, and compares that with their calls, as far as they have
  /// come. Throws Error (input) if one of them has called more or fewer.
  void leave(const std::string& site);

  /// Waits for all ranks. Returns this rank's place among those with the same color, in the order of their
  /// keys.
  PlaceInPart split(int color, int key);
  /// Returns the key of the communicator of that color that this rank splits off without waiting for others.
  std::string begin_part(int color);
  /// Returns the key of the communicator of that color after the last split.
  std::string key_of_part(int color) const;

 private:
  /// Says the message, and compares those that have come. Returns its number.
  std::size_t tell(const PeerMessage& message);
  void send(const CollectiveCall& call, const std::string& site, SmallValues& values);
  void receive(const CollectiveCall& call, const std::string& site, SmallValues& values);
  void compare_received();
  PeerChannel& line_to(int rank);
  PeerChannel& line_from(int rank);
  std::size_t take_next(const CollectiveCall& call, const std::string& site);
  std::vector<char> hear_sent(const CollectiveCall& call, const std::string& site, std::size_t number);
  std::vector<char> hear_all(const CollectiveCall& call, std::size_t number);
  void compare();
  void refuse_other_call(std::size_t number, int rank, const PeerMessage& theirs);

  PeerSettings settings_;
  std::string key_;
  int rank_, ranks_;
  PeerChannel channel_;
  std::vector<PeerMessage> own_;       ///< without values
  std::vector<std::size_t> compared_;  ///< by rank: number of messages
  /// Channels with one other rank, between kSender and kReceiver, by that rank.
  std::map<int, std::unique_ptr<PeerChannel>> lines_to_, lines_from_;
  /// Received messages of which nothing is carried, until they are compared with what is sent.
  struct Received {
    CollectiveCall call;
    std::string site;
    std::size_t number;
  };
  std::vector<Received> uncompared_;
  int splits_ = 0;
};

}  // namespace offprof
