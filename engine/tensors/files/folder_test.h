#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace offprof {

/// Tests with a folder of their own each.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    std::string pattern = ::testing::TempDir() + "offprof_tensors.XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~FolderTest() override { std::filesystem::remove_all(path_); }

  std::string in_folder(const std::string& name) const { return (path_ / name).string(); }

  std::filesystem::path path_;
};

}  // namespace offprof
