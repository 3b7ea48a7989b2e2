#include <torch/version.h>

#include <optional>

#include "engine/autograd_engine.h"
#include "engine/host/counted_allocator.h"
#include "engine/host/host_device.h"
#include "engine/plugin.h"
#include "engine/zoo/build.h"
#include "profiler/run_job.h"
#include "traces/error.h"

namespace offprof {
namespace {

class Plugin final : public EnginePlugin {
 public:
  /// Both before any tensor is made and any backward is run.
  Plugin() : allocator_(CountedAllocator::install()) { install_autograd_engine(); }

  std::string torch_version() const override { return TORCH_VERSION; }

  RunResult run(const RunRequest& request, const Progress& progress) override {
    HostDevice device = make_device(request);
    return run_job(request, device, progress);
  }

  ComparisonResult compare(const RunRequest& request, const std::vector<Policy>& policies,
                           const Progress& progress) override {
    HostDevice device = make_device(request);
    return comparison_job(request, policies, device, progress);
  }

  void make_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                      std::uint64_t seed, const std::string& path) override {
    save_zoo_model(name, sizes, seed, path);
  }

 private:
  HostDevice make_device(const RunRequest& request) {
    if (request.device != "host")
      throw input_error("device '" + request.device + "' is not known", "this version has --device host");
    return {allocator_, request.link_cap};
  }

  CountedAllocator& allocator_;
};

}  // namespace
}  // namespace offprof

/// The one symbol that the program looks up: see engine/plugin.h.
extern "C" __attribute__((visibility("default"))) offprof::EnginePlugin* offprof_engine_plugin() {
  static auto* plugin = new offprof::Plugin;  // for the rest of the process, as LibTorch is
  return plugin;
}
