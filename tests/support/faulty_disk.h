#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/storage/disk_edges.h"

namespace offprof {

/// Fault that replaces the normal result of a request.
struct DiskFault {
  enum class Kind : std::uint8_t {
    kFails,    ///< the request returns `number`, a negative errno or 0
    kShort,    ///< the request transfers only `number` bytes, if it asks for more
    kCorrupt,  ///< one byte that is read is wrong
  };
  Kind kind = Kind::kFails;
  std::int64_t number = 0;
};

/// Queue that inserts a fault into one request, or into every request from a given one on.
class FaultyQueue final : public DiskQueue {
 public:
  /// `count` counts the requests. Request number `at` has the fault, and so have all later ones if it
  /// `stays`.
  FaultyQueue(std::unique_ptr<DiskQueue> queue, DiskFault fault, std::int64_t at, bool stays,
              std::int64_t& count)
      : queue_(std::move(queue)), fault_(fault), at_(at), stays_(stays), count_(count) {}

  void submit(const FileTransfer& request) override {
    const std::int64_t number = count_++;
    if (number != at_ && !(stays_ && number > at_)) return queue_->submit(request);
    if (fault_.kind == DiskFault::Kind::kFails) {
      made_up_.push_back({request.id, fault_.number});
      queue_->wake();
      return;
    }
    spoilt_.emplace(request.id, request);
    submit_spoilt(request);
  }

  void wait(std::vector<DiskCompletion>& done) override {
    queue_->wait(done);
    done.insert(done.end(), made_up_.begin(), made_up_.end());
    made_up_.clear();
    for (DiskCompletion& completion : done) {
      const auto found = spoilt_.find(completion.id);
      if (found == spoilt_.end()) continue;
      spoil(found->second, completion);
      spoilt_.erase(found);
    }
  }

  void wake() override { queue_->wake(); }

 private:
  /// Submits a request that will be faulty. A short write leaves the rest unwritten; the disk itself takes
  /// only multiples of a sector.
  void submit_spoilt(FileTransfer request) {
    constexpr Bytes kSector = 512;
    if (fault_.kind == DiskFault::Kind::kShort && request.direction == DiskDirection::kWrite)
      request.bytes = std::min(request.bytes, round_up(fault_.number, kSector));
    queue_->submit(request);
  }

  void spoil(const FileTransfer& request, DiskCompletion& completion) const {
    const bool reads = request.direction == DiskDirection::kRead;
    if (fault_.kind == DiskFault::Kind::kCorrupt) {
      if (reads) *request.memory ^= std::byte{1};
      return;
    }
    completion.result = std::min(completion.result, fault_.number);
    constexpr std::byte kGarbage{0x5A};
    if (reads) std::fill(request.memory + completion.result, request.memory + request.bytes, kGarbage);
  }

  std::unique_ptr<DiskQueue> queue_;
  DiskFault fault_;
  std::int64_t at_;
  bool stays_;
  std::int64_t& count_;
  std::vector<DiskCompletion> made_up_;
  std::map<std::uint64_t, FileTransfer> spoilt_;  ///< in progress, by id
};

/// System calls. Call number `at` fails.
class FaultyCalls final : public FileCalls {
 public:
  FaultyCalls(std::int64_t at, int error) : at_(at), error_(error) {}
  std::int64_t count() const { return count_; }

  int open(const std::string& path, int flags) override {
    return or_fault([&] { return FileCalls::open(path, flags); });
  }
  int unlink(const std::string& path) override {
    return or_fault([&] { return FileCalls::unlink(path); });
  }
  int set_flags(int fd, int flags) override {
    return or_fault([&] { return FileCalls::set_flags(fd, flags); });
  }
  int forbid_copy_on_write(int fd) override {
    return or_fault([&] { return FileCalls::forbid_copy_on_write(fd); });
  }
  int allocate(int fd, Bytes offset, Bytes bytes) override {
    return or_fault([&] { return FileCalls::allocate(fd, offset, bytes); });
  }
  int truncate(int fd, Bytes bytes) override {
    return or_fault([&] { return FileCalls::truncate(fd, bytes); });
  }
  ssize_t write(int fd, const std::byte* from, Bytes bytes, Bytes offset) override {
    return or_fault([&] { return FileCalls::write(fd, from, bytes, offset); });
  }

 private:
  template <typename Call>
  auto or_fault(Call call) -> decltype(call()) {
    return count_++ == at_ ? -error_ : call();
  }

  std::int64_t at_;
  int error_;
  std::int64_t count_ = 0;
};

}  // namespace offprof
