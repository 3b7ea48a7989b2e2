#pragma once

#include <memory>
#include <string>

#include "engine/disk/disk_tier.h"
#include "engine/disk/file_calls.h"

namespace offprof {

/// A file without a name: gone when it is closed, be it by the kernel that ends the process.
class ScratchFile {
 public:
  /// Throws Error: (input) where none can be made in `folder`, (environment) where file descriptors or memory
  /// are used up.
  ScratchFile(const std::string& folder, DirectIo direct_io, std::shared_ptr<FileCalls> calls);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// Allocates that many bytes on the disk at the end of the file. Empty; or why there is no room, and
  /// nothing has changed. Throws Error (environment) where the disk fails otherwise.
  std::string grow(Bytes bytes);

  int fd() const { return fd_; }
  Bytes bytes() const { return bytes_; }
  /// All but the backend's.
  const DiskTierFacts& facts() const { return facts_; }

 private:
  void open_in(const std::string& folder);
  int open_named(const std::string& folder);
  void look_around();
  void choose_direct_io(DirectIo wanted);
  std::string try_direct_io();
  int allocate(Bytes bytes);
  int fill_with_zeros(Bytes bytes);

  std::shared_ptr<FileCalls> calls_;
  DiskTierFacts facts_;
  int fd_ = -1;
  Bytes bytes_ = 0;
};

}  // namespace offprof
