#include "engine/devices/virtual_gpu/values/peer_channel.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
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

/// Sizes of the three parts of a message, which follow it in the file.
using Sizes = std::array<std::uint32_t, 3>;

std::uint32_t size_of(std::size_t size) {
  return static_cast<std::uint32_t>(size);
}

bool read_at(int file, void* to, std::size_t bytes, off_t from) {
  return pread(file, to, bytes, from) == static_cast<ssize_t>(bytes);
}

/// Returns true if a signal that ends programs has come since the last call.
bool is_interrupted(int signals) {
  bool interrupted = false;
  unsigned char number = 0;
  while (signals >= 0 && read(signals, &number, 1) == 1)
    interrupted = interrupted || number == SIGINT || number == SIGTERM;
  return interrupted;
}

off_t end_of(off_t begin, const Sizes& sizes) {
  return begin + static_cast<off_t>(sizeof sizes) + sizes[0] + sizes[1] + sizes[2];
}

}  // namespace

// The first message of each file tells the process that writes it, and its rank in the job.
PeerChannel::PeerChannel(const PeerSettings& settings, const std::string& name, int rank, int ranks)
    : prefix_(settings.folder + "/" + name),
      rank_(rank),
      patience_(settings.patience.value_or(PeerPatience{})),
      own_(
          open(path_of(rank).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, kReadableByOwner)),
      readers_(static_cast<std::size_t>(ranks)) {
  append({fmt::format("{} {}", getpid(), settings.rank), {}, {}});
}

std::string PeerChannel::path_of(int rank) const {
  return fmt::format("{}.{}", prefix_, rank);
}

void PeerChannel::append(const PeerMessage& message) {
  const Sizes sizes = {size_of(message.what.size()), size_of(message.site.size()),
                       size_of(message.values.size())};
  std::string bytes(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  bytes += message.what + message.site;
  bytes.append(message.values.begin(), message.values.end());
  const char* at = bytes.data();
  for (std::size_t left = bytes.size(); left > 0;) {
    const ssize_t written = write(own_.get(), at, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw environment_error(fmt::format("cannot write {}, by which ranks exchange small values: {}",
                                          path_of(rank_), strerror(errno)));
    at += written;
    left -= static_cast<std::size_t>(written);
  }
}

std::size_t PeerChannel::say(const PeerMessage& message) {
  append(message);
  return said_++;
}

bool PeerChannel::has_said(int rank, std::size_t number) {
  return read_until(rank, number + 1);
}

PeerMessage PeerChannel::hear(int rank, std::size_t number, const std::string& call) {
  const auto value = [&] {
    const std::string of_call = call.empty() ? "" : " in " + call;
    return fmt::format("a value of {}{}", name_of(rank), of_call);
  };
  const auto deadline = std::chrono::steady_clock::now() + patience_.time;
  for (int looks = 1; !has_said(rank, number); ++looks) {
    if (looks % kLooksPerProcessCheck == 0 && has_ended(rank) && !has_said(rank, number))
      throw environment_error(
          fmt::format("{} waits for {}, but the process of that rank has ended", name_of(rank_), value()));
    if (is_interrupted(patience_.signals))
      throw environment_error(
          fmt::format("{} was interrupted while it waited for {}", name_of(rank_), value()));
    if (std::chrono::steady_clock::now() > deadline)
      throw environment_error(
          fmt::format("{} has waited {} s for {}: that rank does not call the same, or is late "
                      "(OFFPROF_PEER_TIMEOUT=SECONDS waits longer)",
                      name_of(rank_), patience_.time.count(), value()));
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return message_at(readers_.at(static_cast<std::size_t>(rank)), number + 1);
}

std::string PeerChannel::name_of(int rank) {
  if (const auto known = peer(rank)) return fmt::format("rank {}", known->rank);
  return fmt::format("rank {} of the communicator", rank);
}

bool PeerChannel::read_until(int rank, std::size_t index) {
  Reader& reader = readers_.at(static_cast<std::size_t>(rank));
  if (!reader.file) {
    Descriptor opened(open(path_of(rank).c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened.valid()) return false;
    reader.file.emplace(std::move(opened));
  }
  while (reader.offsets.size() <= index) {
    Sizes sizes{};
    struct stat status {};
    if (!read_at(reader.file->get(), sizes.data(), sizeof sizes, reader.end)) return false;
    if (fstat(reader.file->get(), &status) != 0 || status.st_size < end_of(reader.end, sizes)) return false;
    reader.offsets.push_back(reader.end);
    reader.end = end_of(reader.end, sizes);
  }
  return true;
}

PeerMessage PeerChannel::message_at(const Reader& reader, std::size_t index) const {
  const off_t begin = reader.offsets.at(index);
  Sizes sizes{};
  PeerMessage message;
  bool is_read = read_at(reader.file->get(), sizes.data(), sizeof sizes, begin);
  message.what.resize(sizes[0]);
  message.site.resize(sizes[1]);
  message.values.resize(sizes[2]);
  off_t at = begin + static_cast<off_t>(sizeof sizes);
  const auto read_part = [&](char* to, std::uint32_t bytes) {
    is_read = is_read && read_at(reader.file->get(), to, bytes, at);
    at += bytes;
  };
  read_part(message.what.data(), sizes[0]);
  read_part(message.site.data(), sizes[1]);
  read_part(message.values.data(), sizes[2]);
  if (!is_read) throw environment_error("cannot read " + prefix_ + ", by which ranks exchange small values");
  return message;
}

std::optional<PeerChannel::Peer> PeerChannel::peer(int rank) {
  if (!read_until(rank, 0)) return std::nullopt;
  const std::string text = message_at(readers_.at(static_cast<std::size_t>(rank)), 0).what;
  Peer peer;
  const char* const end = text.data() + text.size();
  const auto process = std::from_chars(text.data(), end, peer.process);
  if (process.ec == std::errc{} && process.ptr != end) std::from_chars(process.ptr + 1, end, peer.rank);
  return peer;
}

bool PeerChannel::has_ended(int rank) {
  const auto known = peer(rank);
  return known && known->process > 0 && kill(known->process, 0) != 0 && errno == ESRCH;
}

}  // namespace offprof
