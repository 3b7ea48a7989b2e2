#include <torch/version.h>

#include <memory>
#include <optional>

#include "engine/autograd/autograd_engine.h"
#include "engine/devices/factory/device_factory.h"
#include "engine/models/archives/build.h"
#include "profiler/calibration/gpu_measurement.h"
#include "profiler/cupti/open_tracer.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/plugin/plugin.h"
#include "profiler/session/run_job.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

std::unique_ptr<Device> open_device(const RunRequest& request) {
  std::unique_ptr<Device> device = make_device(request.device, request.settings.link_cap.value_or(Link{}));
  if (request.disk) device->open_disk(*request.disk);
  return device;
}

class Plugin final : public EnginePlugin {
 public:
  /// Installs the autograd engine, before any backward runs.
  Plugin() { install_autograd_engine(); }

  std::string torch_version() const override { return TORCH_VERSION; }

  std::string problem_with(const std::string& device) override {
    try {
      make_device(device, {});
      return {};
    } catch (const Error& error) {
      return error.what();
    }
  }

  std::optional<Error> problem_with_tracing() override {
    try {
      open_gpu_tracer();
      return std::nullopt;
    } catch (const Error& error) {
      return error;
    }
  }

  RunResult run(const RunRequest& request, const Progress& progress) override {
    StepTracing tracing = StepTracing::of_device(request.device);
    const auto device = open_device(request);
    return run_job(request, *device, progress, &tracing);
  }

  ComparisonResult compare(const RunRequest& request, const Comparison& comparison,
                           const Progress& progress) override {
    const auto device = open_device(request);
    return comparison_job(request, comparison, *device, progress);
  }

  GpuMeasurements measure_gpu(const std::string& name, const Progress& progress) override {
    const auto device = make_device(name, {});
    return offprof::measure_gpu(*device, progress);
  }

  void make_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                      std::uint64_t seed, const std::string& path, const ZooWeights& parameters) override {
    save_zoo_model(name, sizes, seed, path, parameters);
  }
};

}  // namespace
}  // namespace offprof

/// The one symbol that offprof looks up: see profiler/plugin/plugin.h.
extern "C" __attribute__((visibility("default"))) offprof::EnginePlugin* offprof_engine_plugin() {
  static auto* plugin = new offprof::Plugin;  // never destroyed, like LibTorch
  return plugin;
}
