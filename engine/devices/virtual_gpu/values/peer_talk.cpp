#include "engine/devices/virtual_gpu/values/peer_talk.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>
#include <tuple>
#include <utility>

#include "engine/devices/virtual_gpu/values/peer_values.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

std::string_view name_of(NumberType type) {
  constexpr std::array<std::string_view, 13> kNames = {
      "int8",    "uint8",   "int32",    "uint32",        "int64",       "uint64",      "float32",
      "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "another type"};
  return kNames.at(static_cast<std::size_t>(type));
}

std::string_view name_of(Reduction reduction) {
  constexpr std::array<std::string_view, 6> kNames = {"sum",     "maximum", "minimum",
                                                      "average", "product", "scaled sum"};
  return kNames.at(static_cast<std::size_t>(reduction));
}

bool reduces(Collective collective) {
  return collective == Collective::kAllReduce || collective == Collective::kReduce ||
         collective == Collective::kReduceScatter;
}

/// Describes what has to be the same on all ranks.
std::string describe(const CollectiveCall& call) {
  std::string text = call.is_of_objects ? fmt::format("{} of objects", name_of(call.collective))
                                        : fmt::format("{} of {} bytes of {}", name_of(call.collective),
                                                      call.bytes, name_of(call.type));
  if (reduces(call.collective)) text += fmt::format(" by {}", name_of(call.reduction));
  if (call.collective == Collective::kBroadcast || call.collective == Collective::kReduce)
    text += fmt::format(" with root {} of the communicator", call.root);
  return text;
}

std::vector<PeerParty> parties_of(const std::string& key, int ranks) {
  std::vector<PeerParty> parties;
  for (int rank = 0; rank < ranks; ++rank) parties.push_back({peer_file_name(key, rank), rank});
  return parties;
}

std::vector<PeerParty> ends_of(const std::string& key, int from, int to) {
  return {{peer_file_name(key, from, to, kSender), from}, {peer_file_name(key, from, to, kReceiver), to}};
}

}  // namespace

PeerTalk::PeerTalk(PeerSettings settings, std::string key, int rank, int ranks)
    : settings_(std::move(settings)),
      key_(std::move(key)),
      rank_(rank),
      ranks_(ranks),
      channel_(settings_, parties_of(key_, ranks), rank),
      compared_(static_cast<std::size_t>(ranks), 0) {}

void PeerTalk::call(const CollectiveCall& call, const std::string& site, SmallValues& values) {
  compare_received();
  if (call.collective == Collective::kSend) return send(call, site, values);
  if (call.collective == Collective::kReceive) return receive(call, site, values);
  const PeerMessage message{describe(call), site, values.read(call.send, given_bytes(call, ranks_))};
  const std::size_t number = tell(message);
  const Bytes bytes = received_bytes(call, ranks_);
  if (bytes == 0) return;
  const bool is_of_root = call.collective == Collective::kBroadcast;
  if (bytes > SmallValues::kLargest || (message.values.empty() && !(is_of_root && !call.is_root)))
    return values.forget(call.receive, bytes);
  values.write_later(call.receive, bytes,
                     [self = shared_from_this(), call, number] { return self->hear_all(call, number); });
}

std::size_t PeerTalk::tell(const PeerMessage& message) {
  const std::size_t number = channel_.say(message);
  own_.push_back({message.what, message.site, {}});
  compare();
  return number;
}

std::vector<char> PeerTalk::call_alone(const CollectiveCall& call, const std::string& site,
                                       SmallValues& values) {
  if (call.collective == Collective::kSend) {
    send(call, site, values);
    return {};
  }
  if (call.collective == Collective::kReceive) {
    const std::size_t number = take_next(call, site);
    if (!line_from(call.root).has_said(kSender, number)) return {};
    return hear_sent(call, site, number);
  }
  const std::size_t number = tell({describe(call), site, values.read(call.send, given_bytes(call, ranks_))});
  if (call.collective != Collective::kBroadcast || call.is_root || !channel_.has_said(call.root, number))
    return {};
  return channel_.hear(call.root, number).values;
}

void PeerTalk::leave(const std::string& site) {
  tell({std::string(kNothingMore), site, {}});
}

std::vector<char> PeerTalk::hear_all(const CollectiveCall& call, std::size_t number) {
  std::vector<std::vector<char>> given(static_cast<std::size_t>(ranks_));
  for (int rank = 0; rank < ranks_; ++rank) {
    if (call.collective == Collective::kBroadcast && rank != call.root) continue;
    const PeerMessage& own = own_.at(number);
    given[static_cast<std::size_t>(rank)] = channel_.hear(rank, number, own.what + at_site(own.site)).values;
  }
  compare();
  return combine(call, rank_, given).value_or(std::vector<char>{});
}

/// Compares received messages with those of them that have been sent.
void PeerTalk::compare_received() {
  const auto is_compared = [this](const Received& received) {
    if (!line_from(received.call.root).has_said(kSender, received.number)) return false;
    hear_sent(received.call, received.site, received.number);
    return true;
  };
  std::erase_if(uncompared_, is_compared);
}

/// Compares this rank's calls with those of the others that have come.
void PeerTalk::compare() {
  for (int rank = 0; rank < ranks_; ++rank) {
    std::size_t& number = compared_.at(static_cast<std::size_t>(rank));
    for (; rank != rank_ && number < own_.size() && channel_.has_said(rank, number); ++number)
      refuse_other_call(number, rank, channel_.hear(rank, number));
  }
}

void PeerTalk::refuse_other_call(std::size_t number, int rank, const PeerMessage& theirs) {
  const PeerMessage& ours = own_.at(number);
  if (ours.what == theirs.what) return;
  throw input_error(
      fmt::format("ranks of a communicator call different collectives: {} calls {}{}, and {} calls {}{}",
                  channel_.name_of(rank_), ours.what, at_site(ours.site), channel_.name_of(rank), theirs.what,
                  at_site(theirs.site)));
}

PeerChannel& PeerTalk::line_to(int rank) {
  std::unique_ptr<PeerChannel>& line = lines_to_[rank];
  if (!line) line = std::make_unique<PeerChannel>(settings_, ends_of(key_, rank_, rank), kSender);
  return *line;
}

PeerChannel& PeerTalk::line_from(int rank) {
  std::unique_ptr<PeerChannel>& line = lines_from_[rank];
  if (!line) line = std::make_unique<PeerChannel>(settings_, ends_of(key_, rank, rank_), kReceiver);
  return *line;
}

void PeerTalk::send(const CollectiveCall& call, const std::string& site, SmallValues& values) {
  line_to(call.root).say({describe(call), site, values.read(call.send, call.bytes)});
}

/// Says that this rank receives the next message of another one. Returns its number.
std::size_t PeerTalk::take_next(const CollectiveCall& call, const std::string& site) {
  return line_from(call.root).say({describe(call), site, {}});
}

void PeerTalk::receive(const CollectiveCall& call, const std::string& site, SmallValues& values) {
  const std::size_t number = take_next(call, site);
  if (call.bytes > SmallValues::kLargest) {
    uncompared_.push_back({call, site, number});
    return values.forget(call.receive, call.bytes);
  }
  values.write_later(call.receive, call.bytes, [self = shared_from_this(), call, site, number] {
    return self->hear_sent(call, site, number);
  });
}

std::vector<char> PeerTalk::hear_sent(const CollectiveCall& call, const std::string& site,
                                      std::size_t number) {
  PeerChannel& channel = line_from(call.root);
  PeerMessage sent = channel.hear(kSender, number, describe(call) + at_site(site));
  CollectiveCall expected = call;
  expected.collective = Collective::kSend;
  if (sent.what != describe(expected))
    throw input_error(fmt::format("{} receives {} bytes of {}{}, but {} calls {}{}",
                                  channel.name_of(kReceiver), call.bytes, name_of(call.type), at_site(site),
                                  channel.name_of(kSender), sent.what, at_site(sent.site)));
  return std::move(sent.values);
}

PlaceInPart PeerTalk::split(int color, int key) {
  const std::string what = fmt::format("split {} {}", color, key);
  const std::size_t number = channel_.say({what, {}, {}});
  own_.push_back({what, {}, {}});
  std::vector<std::tuple<int, int>> members;  // key and rank, of this color
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::string theirs = channel_.hear(rank, number).what;
    int their_color = 0, their_key = 0;
    if (std::sscanf(theirs.c_str(), "split %d %d", &their_color, &their_key) != 2)
      throw input_error(fmt::format("{} splits a communicator, and {} calls {}", channel_.name_of(rank_),
                                    channel_.name_of(rank), theirs));
    compared_.at(static_cast<std::size_t>(rank)) = number + 1;
    if (their_color == color) members.emplace_back(their_key, rank);
  }
  ++splits_;
  std::ranges::sort(members);
  const auto own = std::ranges::find(members, std::tuple(key, rank_));
  return {static_cast<int>(own - members.begin()), static_cast<int>(members.size())};
}

std::string PeerTalk::begin_part(int color) {
  ++splits_;
  return key_of_part(color);
}

std::string PeerTalk::key_of_part(int color) const {
  return fmt::format("{} part {} {}", key_, splits_, color);
}

}  // namespace offprof
