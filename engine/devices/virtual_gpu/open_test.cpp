#include "engine/devices/virtual_gpu/open.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <tuple>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"

// CTest runs each test in its own process. In one common process, the tests that open the libraries come
// last.
namespace offprof {
namespace {

VirtualGpuOptions options_for(const char* profile) {
  VirtualGpuOptions options;
  options.profile = load_profile(profile);
  return options;
}

std::string message_of(const std::string& dlopen_message) {
  try {
    check_coverage(dlopen_message);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    return error.what();
  }
  return {};
}

TEST(CheckCoverage, NamesAFunctionThatTheLibrariesLack) {
  EXPECT_THAT(message_of("/x/libtorch_cuda.so: undefined symbol: cudaFoo, version libcudart.so.13"),
              testing::StartsWith("the virtual GPU lacks cudaFoo, which this LibTorch calls"));
  EXPECT_THAT(message_of("/x/libtorch_cuda.so: symbol cublasFoo, version libcublas.so.13 not defined in file "
                         "libcublas.so.13 with link time reference"),
              testing::StartsWith("the virtual GPU lacks cublasFoo"));
}

TEST(CheckCoverage, NamesAVersionThatTheLibrariesLack) {
  EXPECT_THAT(
      message_of("/v/libcudart.so.13: version `libcudart.so.14' not found (required by /x/libtorch_cuda.so)"),
      testing::StartsWith("the virtual GPU lacks libcudart.so.14"));
}

TEST(CheckCoverage, AcceptsOtherMessages) {
  EXPECT_EQ(message_of("/x/libtorch_cuda.so: cannot open shared object file: No such file or directory"), "");
}

TEST(OpenVirtualGpu, NamesAMissingLibrary) {
  try {
    open_virtual_gpu("/nonexistent", options_for("h200"));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), testing::HasSubstr("/nonexistent/liboffprof_virtual_gpu.so"));
  }
}

/// Returns EXIT_SUCCESS if that error is thrown.
int status_of_opening(const std::string& folder, const std::string& what) {
  try {
    open_virtual_gpu(folder, options_for("h200"));
  } catch (const Error& error) {
    if (std::string(error.what()).find(what) != std::string::npos) return EXIT_SUCCESS;
    std::fprintf(stderr, "%s\n", error.what());
  }
  return EXIT_FAILURE;
}

/// Ends the process, with 0 if that error is thrown.
[[noreturn]] void open_and_expect(const std::string& folder, const std::string& what) {
  std::_Exit(status_of_opening(folder, what));
}

/// Creates links to all stand-ins, but a copy of curand's under the name of cufft's.
void mix_stand_ins(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  for (const auto& library : fs::directory_iterator(OFFPROF_STAND_IN_DIR))
    fs::create_symlink(library.path(), folder / library.path().filename());
  fs::remove(folder / "libcufft.so.12");
  fs::copy_file(OFFPROF_STAND_IN_DIR "/libcurand.so.10", folder / "libcufft.so.12");
}

TEST(OpenVirtualGpuDeathTest, RejectsALibraryUnderAWrongName) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto open_mixed = [] {
    int status = EXIT_FAILURE;
    {
      const TestFolder folder;  // destroyed before the process ends
      mix_stand_ins(folder.path());
      status =
          status_of_opening(folder.path(), "libcufft.so.12 does not match its name: it is libcurand.so.10");
    }
    std::_Exit(status);
  };
  EXPECT_EXIT(open_mixed(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

[[noreturn]] void open_over_a_real_library() {
  if (dlopen(OFFPROF_REAL_CUDART, RTLD_NOW | RTLD_GLOBAL) == nullptr) std::abort();
  open_and_expect(OFFPROF_STAND_IN_DIR, "another libcudart.so.13");
}

TEST(OpenVirtualGpuDeathTest, RejectsAProcessWithARealLibrary) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(open_over_a_real_library(), testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST(OpenVirtualGpu, ConfiguresTheGpuEachTime) {
  VirtualGpu& first = open_virtual_gpu(OFFPROF_STAND_IN_DIR, options_for("h200"));
  VirtualGpu& second = open_virtual_gpu(OFFPROF_STAND_IN_DIR, options_for("l4"));
  EXPECT_EQ(&first, &second);
  EXPECT_EQ(first.used_bytes(), 0);
}

TEST(OpenVirtualGpu, GivesADeviceToALibTorchOpenedLater) {
  open_virtual_gpu(OFFPROF_STAND_IN_DIR, options_for("h200"));
  void* const torch = dlopen(OFFPROF_LIBTORCH_CUDA, RTLD_NOW | RTLD_GLOBAL);
  ASSERT_NE(torch, nullptr) << dlerror();
  const auto device_count = reinterpret_cast<signed char (*)()>(dlsym(torch, "_ZN3c104cuda12device_countEv"));
  ASSERT_NE(device_count, nullptr);
  EXPECT_EQ(device_count(), 1);
}

TEST(OpenVirtualGpu, FindsTheCardsThatLibTorchHasCodeFor) {
  VirtualGpuOptions options = options_for("l4");
  VirtualGpu& gpu = open_virtual_gpu(OFFPROF_STAND_IN_DIR, options);
  ASSERT_NE(dlopen(OFFPROF_LIBTORCH_CUDA, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  for (const auto& [major, minor, has_code] : {std::tuple{6, 1, false},
                                               {7, 0, false},
                                               {7, 5, true},
                                               {8, 7, true},
                                               {8, 9, true},
                                               {11, 0, false},
                                               {12, 1, true}}) {
    options.profile.compute_capability_major = major;
    options.profile.compute_capability_minor = minor;
    gpu.configure(options);
    EXPECT_EQ(gpu.code_problem().empty(), has_code) << major << "." << minor;
  }
}

}  // namespace
}  // namespace offprof
