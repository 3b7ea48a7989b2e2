#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>  // mkdtemp, which <cstdlib> need not have

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// A folder of the test's own, gone with it.
class DiskTestFolder {
 public:
  DiskTestFolder() : path_(testing::TempDir() + "offprof-disk-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make a folder like " << path_;
  }
  ~DiskTestFolder() { std::filesystem::remove_all(path_); }
  DiskTestFolder(const DiskTestFolder&) = delete;
  DiskTestFolder& operator=(const DiskTestFolder&) = delete;

  const std::string& path() const { return path_; }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::string path_;
};

/// Bytes that tell their place, and one `seed` from another.
inline std::vector<std::byte> disk_pattern(Bytes bytes, unsigned seed) {
  std::vector<std::byte> pattern(static_cast<std::size_t>(bytes));
  unsigned state = seed * 2654435761U + 1;
  for (std::byte& byte : pattern) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return pattern;
}

}  // namespace offprof
