#include "cli/device_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "cli/engine_loader.h"
#include "cli/nvidia_driver.h"
#include "cli/options.h"
#include "simulator/virtual_gpu/open.h"
#include "traces/error.h"

namespace offprof {
namespace {

constexpr std::string_view kVirtual = "virtual";
/// The profile of plain `--device virtual`.
constexpr const char* kDefaultProfile = "h200";

bool is_kind(std::string_view device, std::string_view kind) {
  return device == kind || (device.starts_with(kind) && device[kind.size()] == ':');
}

/// `auto`, `host`, `cuda[:N]`, `virtual[:PROFILE]`.
std::string parse_device(const std::string& text) {
  if (text == "auto" || text == "host" || is_kind(text, "cuda") || is_kind(text, kVirtual)) return text;
  throw_not_among(text, {"auto", "host", "cuda", "virtual"});
}

std::string profile_of(const std::string& device) {
  const std::size_t colon = device.find(':');
  return colon == std::string::npos ? kDefaultProfile : device.substr(colon + 1);
}

/// Where the stand-in libraries lie: beside the engine.
std::string virtual_gpu_folder() {
  const auto places = engine_places(program_folder());
  const auto engine = std::filesystem::path(find_engine(places).value_or(places.front()));
  return (engine.parent_path() / "virtual_gpu").string();
}

}  // namespace

void DeviceOptions::add_to(CLI::App& app) {
  const std::string group = "Device";
  add_parsed_option(
      app, "--device", "auto|host|cuda[:N]|virtual[:PROFILE]",
      [this](const std::string& text) { device_ = parse_device(text); },
      fmt::format(
          "Where to train; auto: a GPU where one works, else host. virtual: exact CUDA memory and modelled "
          "time with no GPU; PROFILE: {}, or a JSON file (default {})",
          fmt::join(profile_names(), ", "), kDefaultProfile))
      ->group(group);
  app.add_option("--kernel-times", kernel_times_path_,
                 "virtual: how long kernels take, from a trace recorded on a GPU")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--check-streams", checks_streams_,
               "virtual: report what is not ordered between streams; exit status 1 if anything is")
      ->group(group);
}

std::string DeviceOptions::open(Context& context) {
  if (is_kind(device_, kVirtual)) return open_virtual(context);
  if (checks_streams_ || !kernel_times_path_.empty())
    throw input_error("--check-streams and --kernel-times are for a virtual GPU", "Add --device virtual.");
  if (device_ != "auto") return device_;
  return ask_nvidia_driver().gpus > 0 ? "cuda" : "host";
}

std::string DeviceOptions::open_virtual(Context& context) {
  VirtualGpuOptions options;
  options.profile = load_profile(profile_of(device_));
  if (!kernel_times_path_.empty()) options.kernel_times = read_kernel_times(kernel_times_path_);
  options.checks_streams = checks_streams_;
  options.log = [&context](const std::string& text) { context.detail(text); };
  std::string name = fmt::format("{}:{}", kVirtual, options.profile.name);
  gpu_ = &open_virtual_gpu(virtual_gpu_folder(), std::move(options));
  return name;
}

std::vector<StreamHazard> DeviceOptions::take_hazards() const {
  return gpu_ == nullptr ? std::vector<StreamHazard>{} : gpu_->take_hazards();
}

}  // namespace offprof
