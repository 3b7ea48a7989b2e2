#include <fstream>

#include "profiler/plugin/plugin.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// An engine without LibTorch, for tests of the engine loader.
class FakeEngine : public EnginePlugin {
 public:
  std::string torch_version() const override { return "fake"; }
  std::string problem_with(const std::string&) override { return {}; }
  std::optional<Error> problem_with_tracing() override { return std::nullopt; }
  RunResult run(const RunRequest&, const Progress&) override {
    throw input_error("the fake engine trains nothing");
  }
  ComparisonResult compare(const RunRequest&, const Comparison&, const Progress&) override {
    throw input_error("the fake engine trains nothing");
  }
  GpuMeasurements measure_gpu(const std::string&, const Progress&) override {
    throw input_error("the fake engine measures nothing");
  }
  void make_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>&, std::uint64_t,
                      const std::string& path, const ZooWeights&) override {
    std::ofstream(path) << name;
  }
};

}  // namespace
}  // namespace offprof

extern "C" __attribute__((visibility("default"))) offprof::EnginePlugin* offprof_engine_plugin() {
  static offprof::FakeEngine engine;
  return &engine;
}
