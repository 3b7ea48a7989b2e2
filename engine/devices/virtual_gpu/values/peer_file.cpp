#include "engine/devices/virtual_gpu/values/peer_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Sizes of the three parts of a message, which follow it in the file.
using Sizes = std::array<std::uint32_t, 3>;

std::uint32_t size_of(std::size_t size) {
  return static_cast<std::uint32_t>(size);
}

bool read_at(int file, void* to, std::size_t bytes, off_t from) {
  return pread(file, to, bytes, from) == static_cast<ssize_t>(bytes);
}

off_t end_of(off_t begin, const Sizes& sizes) {
  return begin + static_cast<off_t>(sizeof sizes) + sizes[0] + sizes[1] + sizes[2];
}

}  // namespace

std::string at_site(const std::string& site) {
  return site.empty() ? "" : " at " + site;
}

std::string PeerProcess::text() const {
  return fmt::format("{} {} {}", process, rank, ranks);
}

std::string peer_file_name(const std::string& key, int rank) {
  return fmt::format("{:016x}.{}", std::hash<std::string>{}(key), rank);
}

std::string peer_file_name(const std::string& key, int from, int to, int end) {
  return fmt::format("{:016x}.{}-{}.{}", std::hash<std::string>{}(key), from, to,
                     end == kSender ? "sent" : "received");
}

std::string encode(const PeerMessage& message) {
  const Sizes sizes = {size_of(message.what.size()), size_of(message.site.size()),
                       size_of(message.values.size())};
  std::string bytes(reinterpret_cast<const char*>(sizes.data()), sizeof sizes);
  bytes += message.what + message.site;
  bytes.append(message.values.begin(), message.values.end());
  return bytes;
}

// The first message of each file tells the process that writes it.
bool PeerFile::has(std::size_t number) {
  return read_until(number + 1);
}

PeerMessage PeerFile::at(std::size_t number) {
  return message_at(number + 1);
}

std::optional<PeerProcess> PeerFile::process() {
  if (!read_until(0)) return std::nullopt;
  PeerProcess found;
  const std::string text = message_at(0).what;
  if (std::sscanf(text.c_str(), "%d %d %d", &found.process, &found.rank, &found.ranks) != 3)
    return std::nullopt;
  return found;
}

/// Reads how many complete messages there are, until there is the one of that index in the file.
bool PeerFile::read_until(std::size_t index) {
  if (!file_) {
    Descriptor opened(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    if (!opened.valid()) return false;
    file_.emplace(std::move(opened));
  }
  while (offsets_.size() <= index) {
    Sizes sizes{};
    struct stat status {};
    if (!read_at(file_->get(), sizes.data(), sizeof sizes, end_)) return false;
    if (fstat(file_->get(), &status) != 0 || status.st_size < end_of(end_, sizes)) return false;
    offsets_.push_back(end_);
    end_ = end_of(end_, sizes);
  }
  return true;
}

PeerMessage PeerFile::message_at(std::size_t index) const {
  const off_t begin = offsets_.at(index);
  Sizes sizes{};
  PeerMessage message;
  bool is_read = read_at(file_->get(), sizes.data(), sizeof sizes, begin);
  message.what.resize(sizes[0]);
  message.site.resize(sizes[1]);
  message.values.resize(sizes[2]);
  off_t at = begin + static_cast<off_t>(sizeof sizes);
  const auto read_part = [&](char* to, std::uint32_t bytes) {
    is_read = is_read && read_at(file_->get(), to, bytes, at);
    at += bytes;
  };
  read_part(message.what.data(), sizes[0]);
  read_part(message.site.data(), sizes[1]);
  read_part(message.values.data(), sizes[2]);
  if (!is_read) throw environment_error("cannot read " + path_ + ", by which ranks exchange small values");
  return message;
}

}  // namespace offprof
