#include "profiler/cupti/library.h"

#include <dlfcn.h>
#include <link.h>

#include <string>
#include <string_view>
#include <vector>

#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr const char* kLibrary = "libcupti.so.13";

/// Returns the loaded libraries of that name, of any version.
std::vector<std::string> loaded_copies() {
  std::vector<std::string> copies;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view path = info->dlpi_name;
        const std::string_view file = path.substr(path.rfind('/') + 1);
        if (file.starts_with("libcupti.so"))
          static_cast<std::vector<std::string>*>(found)->emplace_back(path);
        return 0;
      },
      &copies);
  return copies;
}

void* open_library() {
  // LibTorch needs CUPTI too, so it is normally loaded.
  void* library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw environment_error(std::string("CUPTI cannot be opened: ") + dlerror(),
                            "install NVIDIA's CUPTI for CUDA 13, or add its folder to LD_LIBRARY_PATH");
  const auto copies = loaded_copies();
  if (copies.size() > 1)
    throw environment_error("two copies of CUPTI are loaded: " + copies[0] + " and " + copies[1],
                            "remove one of their folders from LD_LIBRARY_PATH and LD_PRELOAD");
  return library;
}

class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <typename Function>
  void operator()(Function& function, const char* name) const {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr)
      throw environment_error(std::string("CUPTI lacks ") + name,
                              "offprof needs CUPTI for CUDA 13.0 or later");
  }

 private:
  void* library_;
};

CuptiFunctions find_functions() {
  const Finder find(open_library());
  CuptiFunctions cupti;
  find(cupti.get_version, "cuptiGetVersion");
  find(cupti.get_callback_name, "cuptiGetCallbackName");
  find(cupti.subscribe, "cuptiSubscribe_v2");
  find(cupti.unsubscribe, "cuptiUnsubscribe");
  find(cupti.set_attribute, "cuptiActivitySetAttribute");
  find(cupti.register_timestamp, "cuptiActivityRegisterTimestampCallback");
  find(cupti.register_callbacks, "cuptiActivityRegisterCallbacks");
  find(cupti.enable, "cuptiActivityEnable");
  find(cupti.disable, "cuptiActivityDisable");
  find(cupti.enable_runtime_api, "cuptiActivityEnableRuntimeApi");
  find(cupti.enable_driver_api, "cuptiActivityEnableDriverApi");
  find(cupti.enable_all_sync_records, "cuptiActivityEnableAllSyncRecords");
  find(cupti.flush_all, "cuptiActivityFlushAll");
  find(cupti.get_next_record, "cuptiActivityGetNextRecord");
  find(cupti.get_dropped_records, "cuptiActivityGetNumDroppedRecords");
  find(cupti.push_external_id, "cuptiActivityPushExternalCorrelationId");
  find(cupti.pop_external_id, "cuptiActivityPopExternalCorrelationId");
  return cupti;
}

}  // namespace

const CuptiFunctions& open_cupti() {
  static const CuptiFunctions cupti = find_functions();  // a failed attempt is repeated by the next call
  return cupti;
}

}  // namespace offprof
