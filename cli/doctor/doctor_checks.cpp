#include "cli/doctor/doctor_checks.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "cli/base/version.h"
#include "cli/doctor/library_origin.h"
#include "cli/plugin/child_process.h"
#include "cli/plugin/engine_loader.h"
#include "cli/plugin/nvidia_driver.h"
#include "cli/plugin/python_package.h"
#include "cli/tables/figure_text.h"
#include "engine/devices/virtual_gpu/open.h"
#include "engine/storage/block_codec.h"
#include "engine/storage/disk_tier.h"
#include "traces/base/error.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

namespace fs = std::filesystem;

constexpr const char* kGetEngine =
    "scripts/setup.sh && cmake --preset release && cmake --build --preset release";
// The libraries of the CUDA version for which LibTorch is built.
constexpr const char* kCuptiLibrary = "libcupti.so.13";
constexpr const char* kCudaLibrary = "libcudart.so.13";

/// Facts that a child process learned by opening the engine library.
struct EngineFacts {
  std::string torch_version;
  std::string torch;  ///< path of the library
  std::string cuda;   ///< path of CUDA's runtime; empty if it was not loaded
  std::string cupti;  ///< path of CUPTI; empty if it was not loaded
};

/// Returns the file from which the library of that name was loaded; empty if it is not loaded.
std::string loaded_file(const std::string& name) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos && fs::path(line.substr(path)).filename() == name) return line.substr(path);
  }
  return {};
}

std::string open_engine(const std::string& path) {
  EnginePlugin& engine = load_engine({path});
  if (dlopen(kCuptiLibrary, RTLD_NOW | RTLD_LOCAL) == nullptr) dlerror();
  return nlohmann::json{{"version", engine.torch_version()},
                        {"torch", loaded_file("libtorch_cpu.so")},
                        {"cuda", loaded_file(kCudaLibrary)},
                        {"cupti", loaded_file(kCuptiLibrary)}}
      .dump();
}

EngineFacts facts_from(const std::string& answer) {
  const auto json = nlohmann::json::parse(answer);
  return {json.at("version"), json.at("torch"), json.at("cuda"), json.at("cupti")};
}

Finding engine_missing(const std::string& why, const std::string& fix) {
  return {"engine", Health::kMissing, why, fix};
}

/// Opens the device with everything it needs in this process. Throws if that fails.
std::string try_device(const std::string& engine_path, const std::string& device) {
  const std::string problem = load_engine({engine_path}).problem_with(device);
  if (!problem.empty()) throw std::runtime_error(problem);
  return {};
}

std::string try_virtual_gpu(const std::string& engine_path) {
  VirtualGpuOptions options;
  options.profile = load_profile(profile_names().front());
  const std::string device = "virtual:" + options.profile.name;
  open_virtual_gpu(virtual_gpu_folder(), std::move(options));
  if (const auto problem = load_engine({engine_path}).problem_with_tracing())
    throw std::runtime_error(problem->what());
  return try_device(engine_path, device);
}

Finding virtual_gpu_finding(const std::string& engine_path) {
  const ChildResult tried = run_in_child([&] { return try_virtual_gpu(engine_path); });
  if (tried.ok) return {"virtual GPU", Health::kWorks, virtual_gpu_folder(), ""};
  return {"virtual GPU", Health::kMissing, "--device virtual cannot be opened: " + tried.answer, kGetEngine};
}

Finding cuda_finding(const std::string& engine_path) {
  const ChildResult tried = run_in_child([&] { return try_device(engine_path, "cuda"); });
  if (tried.ok) return {"CUDA device", Health::kWorks, "--device cuda can be opened", ""};
  return {
      "CUDA device", Health::kOptional, "--device cuda cannot be opened: " + tried.answer,
      "an NVIDIA GPU, its driver, and next to LibTorch the NVIDIA packages that the torch wheel depends on; "
      "scripts/setup.sh does not install them"};
}

/// Prints the version of Python, and the version and place of its torch without importing it.
constexpr const char* kDescribePython =
    "import importlib.metadata as m, importlib.util as u, sys; spec = u.find_spec('torch'); "
    "print(sys.version.split()[0]); "
    "spec and print('torch', m.version('torch'), 'in', spec.submodule_search_locations[0])";

/// Runs a command and returns the lines that it printed. Throws if it fails.
std::vector<std::string> lines_of(const std::string& command) {
  std::FILE* const output = popen(command.c_str(), "r");
  if (output == nullptr) throw std::runtime_error("no process can be started");
  std::string text;
  for (int c = 0; (c = std::fgetc(output)) != EOF;) text += static_cast<char>(c);
  if (pclose(output) != 0) throw std::runtime_error("it does not run");
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// Reports the Python in which `run` runs scripts by default, and its torch.
Finding python_finding() {
  constexpr const char* kName = "Python";
  try {
    const std::string python = choose_python("");
    const std::string about = fmt::format(
        "{}", fmt::join(lines_of(fmt::format("'{}' -c \"{}\" 2>/dev/null", python, kDescribePython)), ", "));
    if (about.find("torch") != std::string::npos)
      return {kName, Health::kWorks, fmt::format("{}: {}", python, about), ""};
    return {kName, Health::kOptional, fmt::format("{}: {}, without torch", python, about),
            "activate the environment of your scripts, or name its Python: --python PATH"};
  } catch (const std::exception& error) {
    return {kName, Health::kOptional, fmt::format("scripts cannot run: {}", error.what()),
            "activate the environment of your scripts, or name its Python: --python PATH"};
  }
}

/// Asks the engine in this process if it can trace the GPU: the real one if its driver is present, else the
/// virtual one. Returns the problem as JSON; `{}` if there is none.
std::string try_tracing(const std::string& engine_path) {
  const std::optional<Error> problem = load_engine({engine_path}).problem_with_tracing();
  if (!problem) return "{}";
  return nlohmann::json{{"why", problem->what()}, {"fix", problem->hint()}}.dump();
}

Finding tracer_finding(const std::string& engine_path) {
  constexpr const char* kName = "GPU tracer";
  const ChildResult tried = run_in_child([&] { return try_tracing(engine_path); });
  if (!tried.ok) return {kName, Health::kOptional, tried.answer, kGetEngine};
  const auto problem = nlohmann::json::parse(tried.answer);
  if (problem.empty()) return {kName, Health::kWorks, "kernels and copies of --device cuda are traced", ""};
  return {kName, Health::kOptional,
          fmt::format("{}; without it, timelines of --device cuda have no kernels",
                      problem.at("why").get<std::string>()),
          problem.at("fix")};
}

/// Returns the path, and where the library comes from.
std::string with_origin(const std::string& path) {
  const std::string origin = library_origin(path);
  return origin.empty() ? path : fmt::format("{}, {}", path, origin);
}

Finding torch_finding(const EngineFacts& facts) {
  const std::string folder = fs::path(facts.torch).parent_path().string();
  return {"LibTorch", Health::kWorks,
          fmt::format("{} in {}, {}", facts.torch_version, folder, library_origin(facts.torch)), ""};
}

Finding cuda_runtime_finding(const std::string& file) {
  if (!file.empty()) return {"CUDA runtime", Health::kWorks, with_origin(file), ""};
  return {"CUDA runtime", Health::kOptional,
          fmt::format("{} is not loaded; only --device cuda needs it", kCudaLibrary),
          "NVIDIA's package nvidia-cuda-runtime beside torch, or the CUDA Toolkit 13"};
}

Finding cupti_finding(const std::string& file) {
  if (!file.empty()) return {"CUPTI", Health::kWorks, with_origin(file), ""};
  return {"CUPTI", Health::kOptional,
          fmt::format("{} cannot be opened; it is needed to trace GPU kernels", kCuptiLibrary),
          "scripts/setup.sh"};
}

void add_engine(std::vector<Finding>& findings) {
  const auto path = find_engine(engine_places(program_folder()));
  if (!path) {
    findings.push_back(engine_missing("not built: without it `run` and `zoo make` do not work", kGetEngine));
    return;
  }
  const ChildResult opened = run_in_child([&] { return open_engine(*path); });
  if (!opened.ok) {
    findings.push_back(engine_missing(opened.answer, kGetEngine));
    return;
  }
  const EngineFacts facts = facts_from(opened.answer);
  findings.push_back({"engine", Health::kWorks, *path, ""});
  findings.push_back(torch_finding(facts));
  findings.push_back(cuda_runtime_finding(facts.cuda));
  findings.push_back(cupti_finding(facts.cupti));
  findings.push_back(python_finding());
  findings.push_back(virtual_gpu_finding(*path));
  findings.push_back(cuda_finding(*path));
  findings.push_back(tracer_finding(*path));
}

/// Returns the number on the first line of a kernel file; nullopt if there is none (`max`, or no file).
std::optional<std::int64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t number = 0;
  return file >> number ? std::optional(number) : std::nullopt;
}

Finding processor() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  const int here = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  const std::string of_all = here < all ? fmt::format(" of {}", all) : "";
  return {"processor", Health::kWorks, fmt::format("{}{} cores", here, of_all), ""};
}

Bytes meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    Bytes kib = 0;
    if (words >> name >> kib && name == key + ":") return kib * kKiB;
  }
  return 0;
}

Finding memory() {
  std::string text = fmt::format("{}, {} available", format_bytes(meminfo("MemTotal")),
                                 format_bytes(meminfo("MemAvailable")));
  // A container's limit (control groups version 2).
  if (const auto limit = number_in("/sys/fs/cgroup/memory.max"))
    text += fmt::format("; limit {}", format_bytes(*limit));
  return {"memory", Health::kWorks, text, ""};
}

Finding nvidia_driver() {
  const DriverAnswer answer = ask_nvidia_driver();
  if (answer.gpus > 0) return {"NVIDIA driver", Health::kWorks, counted(answer.gpus, "GPU"), ""};
  return {"NVIDIA driver", Health::kOptional,
          answer.problem + "; the host and virtual devices do not need it",
          "on a machine with an NVIDIA GPU: apt-get install nvidia-driver"};
}

/// Tests the disk of the folder for temporary files, since the user's disk is not known here.
Finding disk_tier() {
  const ChildResult tried =
      run_in_child([] { return describe(DiskTier(fs::temp_directory_path().string()).facts()); });
  if (tried.ok) return {"disk tier", Health::kWorks, tried.answer, ""};
  return {"disk tier", Health::kOptional, tried.answer, "set TMPDIR to a writable folder"};
}

/// Checks the codec of `run --compress`.
Finding compression() {
  try {
    return {"compression", Health::kWorks, block_codec(), ""};
  } catch (const Error& error) {
    return {"compression", Health::kOptional, error.what(),
            "apt-get install libblosc-dev, and build offprof again"};
  }
}

/// Returns the file that a shell would run for that name; empty if there is none.
std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (fs::path(folder) / name).string();
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return {};
}

/// Looks Holistic Trace Analysis up without importing it. Throws if it is not installed.
std::string find_hta(const std::string& python) {
  const std::string code = "import importlib.util, sys; sys.exit(importlib.util.find_spec('hta') is None)";
  if (std::system(fmt::format("'{}' -c \"{}\"", python, code).c_str()) != 0)
    throw std::runtime_error("not installed");
  return "installed";
}

Finding holistic_trace_analysis() {
  const char* name = "HTA";
  const std::string python = find_program("python3");
  if (python.empty()) {
    return {name, Health::kOptional, "no python3; offprof itself does not need it",
            "apt-get install python3-pip"};
  }
  const ChildResult found = run_in_child([&] { return find_hta(python); });
  if (found.ok) return {name, Health::kWorks, fmt::format("in {}", python), ""};
  return {name, Health::kOptional, "Holistic Trace Analysis is not installed; only its notebooks need it",
          "python3 -m pip install HolisticTraceAnalysis"};
}

}  // namespace

std::vector<Finding> examine_machine() {
  std::vector<Finding> findings;
  findings.push_back({"offprof", Health::kWorks, std::string(program_version()), ""});
  add_engine(findings);
  findings.push_back(processor());
  findings.push_back(memory());
  findings.push_back(disk_tier());
  findings.push_back(compression());
  findings.push_back(nvidia_driver());
  findings.push_back(holistic_trace_analysis());
  return findings;
}

}  // namespace offprof
