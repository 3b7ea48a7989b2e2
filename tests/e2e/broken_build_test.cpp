// A build with missing or broken files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "e2e/offprof_process.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPlugin = "liboffprof_cuda.so";

/// A copy of the program, with links to the built libraries.
class BrokenBuild : public testing::Test {
 protected:
  BrokenBuild() {
    fs::copy_file(program_path(), folder_ / "offprof");
    link("liboffprof_engine.so");
    link(kPlugin);
    fs::create_directory(folder_ / "virtual_gpu");
    for (const auto& library : fs::directory_iterator(program_path().parent_path() / "virtual_gpu"))
      link("virtual_gpu/" + library.path().filename().string());
  }

  void link(const std::string& file) {
    fs::create_symlink(program_path().parent_path() / file, folder_ / file);
  }
  void remove(const std::string& file) { fs::remove_all(folder_ / file); }
  void empty(const std::string& file) {
    remove(file);
    std::ofstream(folder_ / file).flush();
  }
  /// Returns the error of a run on a virtual GPU.
  std::string refusal() {
    const Ended ended = run_program_at(
        folder_ / "offprof",
        {"run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"), "--device", "virtual"});
    EXPECT_EQ(ended.status, 3) << ended.err;
    return unwrapped(ended.err);
  }
  Ended doctor() { return run_program_at(folder_ / "offprof", {"doctor"}); }

  TestFolder folder_;
};

TEST_F(BrokenBuild, ReportsAMissingCudaLibrary) {
  remove(kPlugin);
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr(kPlugin), HasSubstr("is missing or broken"), Not(HasSubstr("needs neither"))));
  empty(kPlugin);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("file too short"), HasSubstr("is missing or broken")));
}

TEST_F(BrokenBuild, NamesAMissingStandInLibrary) {
  remove("virtual_gpu/libcufft.so.12");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("virtual_gpu/libcufft.so.12"), HasSubstr("is missing or broken")));
}

TEST_F(BrokenBuild, IsFoundByDoctor) {
  for (const char* file : {kPlugin, "virtual_gpu/libcufft.so.12", "virtual_gpu"}) {
    remove(file);
    const Ended ended = doctor();
    EXPECT_EQ(ended.status, 3) << file;
    EXPECT_THAT(unwrapped(ended.out), AllOf(ContainsRegex("missing +virtual GPU"), HasSubstr(file)));
  }
}

TEST_F(BrokenBuild, IsNotReportedIfAllFilesExist) {
  const Ended ended = doctor();
  EXPECT_EQ(ended.status, 0) << ended.out;
  EXPECT_THAT(ended.out, ContainsRegex("ok +virtual GPU"));
}

/// Symbols of libraries that the program is linked with take precedence over LibTorch's. A BLAS among them
/// would replace LibTorch's, and be several times slower.
TEST(BuiltProgram, LinksNoLinearAlgebraLibrary) {
  FILE* listing = popen(("ldd " + program_path().string()).c_str(), "r");
  ASSERT_NE(listing, nullptr);
  std::string libraries;
  for (int letter = std::fgetc(listing); letter != EOF; letter = std::fgetc(listing))
    libraries += static_cast<char>(letter);
  EXPECT_EQ(pclose(listing), 0);
  EXPECT_THAT(libraries, HasSubstr("libc.so"));
  EXPECT_THAT(libraries, Not(HasSubstr("blas")));
  EXPECT_THAT(libraries, Not(HasSubstr("lapack")));
}

}  // namespace
}  // namespace offprof
