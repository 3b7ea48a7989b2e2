// Measures the speed of writing and reading traces, and the memory that reading takes.
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "simulator/steps/views.h"
#include "tests/bench/transformer_program.h"
#include "traces/format/trace_io.h"
#include "traces/timeline/timeline_reader.h"

namespace offprof {
namespace {

/// The part of a trace that takes up most of the file.
enum class Shape { kTimeline, kProgram };

constexpr double kFileBytes = 200e6;
const Link kPcie{{25e9, 10'000}, {25e9, 10'000}};

Trace make_trace(Shape shape, int blocks) {
  Trace trace;
  trace.tool_version = "0.1.0";
  trace.environment = {"host", "CPU, 2 cores", "2.11.0", 1, kPcie};
  trace.policy = preset_policy("offload");
  trace.program = TransformerProgram::make(blocks);
  if (shape == Shape::kTimeline)
    trace.timeline = replay_timeline(trace.program, Step(trace.program), trace.policy, kPcie);
  return trace;
}

/// Calls `work` in a child process and returns the child's peak memory in bytes; 0 if it failed.
template <typename Work>
double peak_bytes_of(const Work& work) {
  ::malloc_trim(0);  // memory of this process also counts for the child
  const pid_t child = ::fork();
  if (child == 0) {
    work();
    ::_exit(0);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  return child > 0 && status == 0 ? 1024.0 * static_cast<double>(usage.ru_maxrss) : 0;
}

/// Trace files of each shape, created on first use and deleted at the end.
class TraceFiles {
 public:
  TraceFiles()
      : folder_(std::filesystem::temp_directory_path() / ("offprof-bench-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~TraceFiles() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TraceFiles(const TraceFiles&) = delete;
  TraceFiles& operator=(const TraceFiles&) = delete;

  /// Returns the path of a file of about kFileBytes.
  const std::string& path(Shape shape) {
    std::string& path = paths_[shape];
    if (!path.empty()) return path;
    constexpr int kSmall = 100;
    const auto small = static_cast<double>(format_trace(make_trace(shape, kSmall)).size());
    path = folder_ / (shape == Shape::kTimeline ? "timeline.json" : "program.json");
    const int blocks = static_cast<int>(kFileBytes / small * kSmall);
    peak_bytes_of([&] { write_trace(path, make_trace(shape, blocks)); });
    return path;
  }

 private:
  std::filesystem::path folder_;
  std::map<Shape, std::string> paths_;
};

void write_text(benchmark::State& state, Shape shape) {
  const Trace trace = make_trace(shape, 31);
  std::int64_t bytes = 0;
  for (auto _ : state) bytes += static_cast<std::int64_t>(format_trace(trace).size());
  state.SetBytesProcessed(bytes);
}

void load(benchmark::State& state, TraceFiles* files, Shape shape) {
  const std::string& path = files->path(shape);
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  // The benchmark function is called many times for one figure.
  static std::map<Shape, std::pair<double, double>> peaks;
  auto& [peak, with_step] = peaks[shape];
  if (peak == 0) {
    peak = peak_bytes_of([&] { benchmark::DoNotOptimize(read_trace(path)); });
    with_step = peak_bytes_of([&] {
      const Trace trace = read_trace(path);
      benchmark::DoNotOptimize(Step(trace.program));
    });
  }
  for (auto _ : state) benchmark::DoNotOptimize(read_trace(path));
  state.SetBytesProcessed(state.iterations() * size);
  state.counters["peak_memory/file"] = peak / static_cast<double>(size);
  state.counters["with_step/file"] = with_step / static_cast<double>(size);
}

void load_timeline(benchmark::State& state, TraceFiles* files) {
  const std::string& path = files->path(Shape::kTimeline);
  for (auto _ : state) benchmark::DoNotOptimize(read_timeline(path));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(std::filesystem::file_size(path)));
}

void register_all(TraceFiles& files) {
  using benchmark::RegisterBenchmark;
  RegisterBenchmark("trace/write", write_text, Shape::kTimeline)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("trace/load/timeline", load, &files, Shape::kTimeline)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("trace/load/program", load, &files, Shape::kProgram)->Unit(benchmark::kMillisecond);
  RegisterBenchmark("trace/read_timeline", load_timeline, &files)->Unit(benchmark::kMillisecond);
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  offprof::TraceFiles files;
  offprof::register_all(files);
  benchmark::RunSpecifiedBenchmarks();
}
