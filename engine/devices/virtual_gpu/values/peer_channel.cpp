#include "engine/devices/virtual_gpu/values/peer_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};
/// Looks at the file between two looks at the process that writes it.
constexpr int kLooksPerProcessCheck = 50;
constexpr int kReadableByOwner = 0600;

/// Returns true if a signal that ends programs has come since the last call.
bool is_interrupted(int signals) {
  bool interrupted = false;
  unsigned char number = 0;
  while (signals >= 0 && read(signals, &number, 1) == 1)
    interrupted = interrupted || number == SIGINT || number == SIGTERM;
  return interrupted;
}

}  // namespace

PeerChannel::PeerChannel(const PeerSettings& settings, std::vector<PeerParty> parties, int own)
    : parties_(std::move(parties)),
      self_(own),
      own_path_(settings.folder + "/" + parties_.at(static_cast<std::size_t>(own)).file),
      patience_(settings.patience.value_or(PeerPatience{})),
      own_(open(own_path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, kReadableByOwner)) {
  for (const PeerParty& party : parties_) files_.emplace_back(settings.folder + "/" + party.file);
  append({PeerProcess{getpid(), settings.rank, settings.ranks}.text(), {}, {}});
}

void PeerChannel::append(const PeerMessage& message) {
  const std::string bytes = encode(message);
  const char* at = bytes.data();
  for (std::size_t left = bytes.size(); left > 0;) {
    const ssize_t written = write(own_.get(), at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw environment_error(fmt::format("cannot write {}, by which ranks exchange small values: {}",
                                          own_path_, strerror(errno)));
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::size_t PeerChannel::say(const PeerMessage& message) {
  append(message);
  return said_++;
}

bool PeerChannel::has_said(int party, std::size_t number) {
  return file_of(party).has(number);
}

PeerMessage PeerChannel::hear(int party, std::size_t number, const std::string& call) {
  const auto value = [&] {
    const std::string of_call = call.empty() ? "" : " in " + call;
    return fmt::format("a value of {}{}", name_of(party), of_call);
  };
  const auto deadline = std::chrono::steady_clock::now() + patience_.time;
  for (int looks = 1; !has_said(party, number); ++looks) {
    if (looks % kLooksPerProcessCheck == 0 && has_ended(party) && !has_said(party, number))
      throw environment_error(
          fmt::format("{} waits for {}, but the process of that rank has ended", name_of(self_), value()));
    if (is_interrupted(patience_.signals))
      throw environment_error(
          fmt::format("{} was interrupted while it waited for {}", name_of(self_), value()));
    if (std::chrono::steady_clock::now() > deadline)
      throw environment_error(
          fmt::format("{} has waited {} s for {}: that rank does not call the same, or is late "
                      "(OFFPROF_PEER_TIMEOUT=SECONDS waits longer)",
                      name_of(self_), patience_.time.count(), value()));
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return file_of(party).at(number);
}

std::string PeerChannel::name_of(int party) {
  if (const auto known = file_of(party).process()) return fmt::format("rank {}", known->rank);
  return fmt::format("rank {} of the communicator", parties_.at(static_cast<std::size_t>(party)).rank);
}

bool PeerChannel::has_ended(int party) {
  const auto known = file_of(party).process();
  return known && known->process > 0 && kill(known->process, 0) != 0 && errno == ESRCH;
}

}  // namespace offprof
