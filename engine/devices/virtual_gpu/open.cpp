#include "engine/devices/virtual_gpu/open.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <regex>
#include <system_error>
#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr const char* kStateLibrary = "liboffprof_virtual_gpu.so";

constexpr const char* kStandIns[] = {
    "libcudart.so.13", "libcuda.so.1",      "libcublas.so.13",   "libcublasLt.so.13",
    "libcudnn.so.9",   "libcufft.so.12",    "libcufile.so.0",    "libcupti.so.13",
    "libcurand.so.10", "libcusolver.so.12", "libcusparse.so.12", "libcusparseLt.so.0",
    "libnccl.so.2",    "libnvidia-ml.so.1", "libnvrtc.so.13",    "libnvshmem_host.so.3",
};

constexpr const char* kRebuildHint = "rebuild offprof against this LibTorch: cmake --build build";
constexpr const char* kMissingHint =
    "a file of the build is missing or broken; run cmake --preset release && cmake --build --preset release";

void* open_library(const std::string& folder, const char* name) {
  const std::string path = folder + "/" + name;
  if (void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) return handle;
  throw environment_error(fmt::format("cannot open the virtual GPU's library {}: {}", path, dlerror()),
                          kMissingHint);
}

/// Returns the entry's address. Some dynamic loaders have added the library's base to it, others have not.
ElfW(Addr) address_in(const link_map& library, const ElfW(Dyn) & entry) {
  const ElfW(Addr) address = entry.d_un.d_ptr;
  return address < library.l_addr ? library.l_addr + address : address;
}

/// Returns the path from which a library was loaded; empty if it cannot be determined.
std::string path_of(void* library) {
  const link_map* loaded = nullptr;
  return dlinfo(library, RTLD_DI_LINKMAP, &loaded) == 0 ? loaded->l_name : "";
}

/// Returns the soname of a library, independent of its file name; empty: it has none.
std::string soname_of(void* library) {
  const link_map* loaded = nullptr;
  if (dlinfo(library, RTLD_DI_LINKMAP, &loaded) != 0) return {};
  const char* strings = nullptr;
  const ElfW(Dyn)* soname = nullptr;
  for (const ElfW(Dyn)* entry = loaded->l_ld; entry->d_tag != DT_NULL; ++entry) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the loader's tables hold addresses as numbers
    if (entry->d_tag == DT_STRTAB) strings = reinterpret_cast<const char*>(address_in(*loaded, *entry));
    if (entry->d_tag == DT_SONAME) soname = entry;
  }
  return strings == nullptr || soname == nullptr ? "" : strings + soname->d_un.d_val;
}

// Checks the soname, since LibTorch finds libraries by it.
void open_stand_in(const std::string& folder, const char* name) {
  void* stand_in = open_library(folder, name);
  if (const std::string soname = soname_of(stand_in); soname != name) {
    throw environment_error(fmt::format("{}/{} does not match its name: it is {}", folder, name,
                                        soname.empty() ? "not a CUDA library" : soname),
                            kRebuildHint);
  }
}

/// Throws if a library of that name is loaded from elsewhere. LibTorch would use it in place of the stand-in,
/// since the loader keeps the first library of a name.
void refuse_other_library(const std::string& folder, const char* name) {
  void* const loaded = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return;
  const std::string path = path_of(loaded);
  dlclose(loaded);
  std::error_code error;
  if (std::filesystem::equivalent(path, std::filesystem::path(folder) / name, error)) return;
  throw environment_error(
      fmt::format("another {} was loaded into the process before the virtual GPU's: {}", name, path),
      "unset LD_PRELOAD, open the virtual GPU before any library that uses CUDA, or use --device cuda");
}

}  // namespace

VirtualGpu& open_virtual_gpu(const std::string& folder, VirtualGpuOptions options) {
  for (const char* name : kStandIns) refuse_other_library(folder, name);
  void* state = open_library(folder, kStateLibrary);
  for (const char* name : kStandIns) open_stand_in(folder, name);
  // PyTorch caches kernels that it compiles on disk. The kernels of the virtual GPU are empty and must not
  // get into that cache.
  setenv("USE_PYTORCH_KERNEL_CACHE", "0", /*overwrite=*/1);
  const auto the_gpu = reinterpret_cast<VirtualGpu* (*)()>(dlsym(state, kVirtualGpuSymbol));
  if (the_gpu == nullptr) {
    throw environment_error(
        fmt::format("{}/{} is not a library of offprof: {}", folder, kStateLibrary, dlerror()), kRebuildHint);
  }
  VirtualGpu& gpu = *the_gpu();
  gpu.configure(std::move(options));
  return gpu;
}

void check_coverage(const std::string& dlopen_message) {
  static const std::regex kMissing(
      "undefined symbol: ([A-Za-z_0-9]+)|symbol ([A-Za-z_0-9]+), version [^ ]+ not defined|"
      "version `([^']+)' not found");
  std::smatch found;
  if (!std::regex_search(dlopen_message, found, kMissing)) return;
  const std::string symbol = found[1].matched ? found[1] : found[2].matched ? found[2] : found[3];
  throw environment_error(fmt::format("the virtual GPU lacks {}, which this LibTorch calls: its libraries "
                                      "were built for another LibTorch, "
                                      "and its figures would be unreliable ({})",
                                      symbol, dlopen_message),
                          kRebuildHint);
}

}  // namespace offprof
