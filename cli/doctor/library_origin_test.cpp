#include "cli/doctor/library_origin.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

TEST(LibraryOrigin, NamesWhoInstalledTheLibrary) {
  EXPECT_EQ(library_origin("/src/.deps/libtorch/torch/lib/libtorch_cpu.so"), "installed by scripts/setup.sh");
  EXPECT_EQ(library_origin("/src/.deps/python/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so"),
            "installed by scripts/setup.sh");
  EXPECT_EQ(library_origin("/home/me/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13"),
            "of the Python in /home/me/venv");
  EXPECT_EQ(library_origin("/usr/lib/python3/dist-packages/torch/lib/libtorch_cpu.so"),
            "of the system's Python");
  EXPECT_EQ(library_origin("/opt/libtorch-2.11/lib/libtorch_cpu.so"),
            "of the LibTorch archive in /opt/libtorch-2.11");
  EXPECT_EQ(library_origin("/usr/local/cuda-13.0/extras/CUPTI/lib64/libcupti.so.13"),
            "of the CUDA Toolkit in /usr/local/cuda-13.0");
  EXPECT_EQ(library_origin("/usr/lib/x86_64-linux-gnu/libcupti.so.13"), "of the system");
  EXPECT_EQ(library_origin("/opt/mine/libcupti.so.13"), "");
}

// The library itself is named libtorch, too.
TEST(LibraryOrigin, DoesNotTakeTheNameOfALibraryForAFolder) {
  EXPECT_EQ(library_origin("/opt/mine/libtorch_cpu.so"), "");
}

}  // namespace
}  // namespace offprof
