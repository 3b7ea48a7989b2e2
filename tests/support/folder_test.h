#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/support/test_folder.h"

namespace offprof {

/// Test fixture with a separate folder for each test.
class FolderTest : public ::testing::Test {
 protected:
  std::string in_folder(const std::string& name) const { return folder_ / name; }

  const TestFolder folder_;
  const std::filesystem::path path_ = folder_.path();
};

}  // namespace offprof
