#include "cli/options/device_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/options/options.h"
#include "cli/plugin/engine_loader.h"
#include "cli/plugin/nvidia_driver.h"
#include "engine/devices/virtual_gpu/open.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr std::string_view kVirtual = "virtual";

bool is_kind(std::string_view device, std::string_view kind) {
  return device == kind || (device.starts_with(kind) && device[kind.size()] == ':');
}

/// Accepts `auto`, `host`, `cuda[:N]`, `virtual[:PROFILE]`.
std::string parse_device(const std::string& text) {
  if (text == "auto" || text == "host" || is_kind(text, "cuda") || is_kind(text, kVirtual)) return text;
  throw_not_among(text, {"auto", "host", "cuda", "virtual"});
}

std::string profile_of(const std::string& device) {
  const std::size_t colon = device.find(':');
  return colon == std::string::npos ? kDefaultProfile : device.substr(colon + 1);
}

}  // namespace

void check_device(const std::string& device) {
  if (is_kind(parse_device(device), kVirtual)) load_profile(profile_of(device));
}

void DeviceOptions::add_to(CLI::App& app) {
  const std::string group = "Device";
  add_parsed_option(
      app, "--device", "auto|host|cuda[:N]|virtual[:PROFILE]",
      [this](const std::string& text) { device_ = parse_device(text); },
      fmt::format(
          "Device to train on; auto: a GPU if one works, else host; virtual: exact CUDA memory and modelled "
          "times without a GPU; PROFILE: {}, or a JSON file (default {})",
          fmt::join(profile_names(), ", "), kDefaultProfile))
      ->group(group);
  app.add_option("--kernel-times", kernel_times_path_,
                 "virtual: kernel times from a trace that was recorded on a GPU")
      ->type_name("FILE")
      ->group(group);
  app.add_flag("--check-streams", checks_streams_,
               "virtual: report races between streams; exit status 1 if there are any")
      ->group(group);
}

std::optional<std::string> DeviceOptions::kernel_times() const {
  if (kernel_times_path_.empty()) return std::nullopt;
  return std::filesystem::path(kernel_times_path_).filename().string();
}

void DeviceOptions::choose(const std::string& device) {
  device_ = parse_device(device);
}

std::string DeviceOptions::open(Context& context, const std::optional<Link>& link_cap) {
  if (is_kind(device_, kVirtual)) return open_virtual(context, link_cap);
  return resolved(link_cap);
}

std::string DeviceOptions::resolved(const std::optional<Link>& link_cap) const {
  if (checks_streams_ || !kernel_times_path_.empty())
    throw input_error("--check-streams and --kernel-times need a virtual GPU", "Add --device virtual.");
  std::string device = device_;
  if (device == "auto") device = ask_nvidia_driver().gpus > 0 ? "cuda" : "host";
  if (link_cap && device != "host")
    throw input_error("--link cannot slow down the link of a real GPU",
                      "Omit it, or add --device host or --device virtual.");
  return device;
}

std::string DeviceOptions::open_in_script(const std::optional<Link>& link_cap,
                                          std::optional<ScriptGpu>& gpu) const {
  if (!is_kind(device_, kVirtual)) return resolved(link_cap);
  if (checks_streams_ || !kernel_times_path_.empty() || link_cap)
    throw input_error(
        "--check-streams, --kernel-times and --link are not available for training scripts on a virtual GPU",
        "Omit them.");
  gpu = {profile_of(device_), virtual_gpu_folder()};
  return fmt::format("{}:{}", kVirtual, load_profile(gpu->profile).name);
}

std::string DeviceOptions::open_virtual(Context& context, const std::optional<Link>& link_cap) {
  VirtualGpuOptions options;
  options.profile = load_profile(profile_of(device_));
  if (link_cap) options.profile.link = slower_of(options.profile.link, *link_cap);
  if (!kernel_times_path_.empty()) options.kernel_times = read_kernel_times(kernel_times_path_);
  options.checks_streams = checks_streams_;
  options.log = [&context](const std::string& function) {
    context.detail("the virtual GPU does not implement " + function + ": the call does nothing");
  };
  std::string name = fmt::format("{}:{}", kVirtual, options.profile.name);
  gpu_ = &open_virtual_gpu(virtual_gpu_folder(), std::move(options));
  return name;
}

std::vector<StreamHazard> DeviceOptions::take_hazards() const {
  return gpu_ == nullptr ? std::vector<StreamHazard>{} : gpu_->take_hazards();
}

}  // namespace offprof
