#pragma once

#include <memory>
#include <string>

#include "engine/storage/disk_tier.h"
#include "engine/storage/file_calls.h"

namespace offprof {

/// Unnamed file, which disappears when it is closed, even if the kernel closes it because the process died.
class ScratchFile {
 public:
  /// Throws Error: (input) if no file can be created in `folder`; (environment) if file descriptors or memory
  /// are used up.
  ScratchFile(const std::string& folder, DirectIo direct_io, std::shared_ptr<FileCalls> calls);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  /// Allocates `bytes` on the disk at the end of the file. Returns an empty string, or, if there is no room,
  /// the reason, and then the file has not changed. Throws Error (environment) if the disk fails in another
  /// way.
  std::string grow(Bytes bytes);

  int fd() const { return fd_; }
  Bytes bytes() const { return bytes_; }
  /// Facts about the file; those about the backend are not set.
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
