#include "cli/disk_options.h"

#include <filesystem>
#include <system_error>

#include "cli/options.h"
#include "traces/error.h"
#include "traces/units.h"

namespace offprof {
namespace {

double rate_in(std::string text) {
  if (text.find('/') == std::string::npos) text += "/s";
  return parse_rate(text);
}

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

}  // namespace

DiskLink parse_disk_speed(const std::string& text) {
  const std::size_t comma = text.find(',');
  DiskLink speed;
  speed.write.bytes_per_second = rate_in(text.substr(0, comma));
  speed.read.bytes_per_second =
      comma == std::string::npos ? speed.write.bytes_per_second : rate_in(text.substr(comma + 1));
  return speed;
}

CLI::Option* add_disk_bandwidth_option(CLI::App& app, std::optional<DiskLink>& speed,
                                       const std::string& what) {
  return add_parsed_option(
      app, "--disk-bandwidth", "WRITE[,READ]",
      [&speed](const std::string& text) { speed = parse_disk_speed(text); }, what);
}

void require_disk_speed(const Policy& policy, const Link& link) {
  if (!uses_disk(policy) || link.disk.is_known()) return;
  throw input_error("the policy places tensors on a disk, and the trace does not say how fast one is",
                    "Give it: --disk-bandwidth 2GB/s, or record a trace with run --disk DIR");
}

void share_disk_with_weights(RunRequest& request) {
  const auto& weights = request.settings.weights;
  if (!weights || weights->place != "disk") return;
  const std::string& folder = request.weights_folder;
  if (request.device.starts_with("virtual")) {
    if (!folder.empty())
      throw input_error("on a virtual GPU the disk of the weights is modelled too: there is nothing to write",
                        "Give --disk-bandwidth 2GB/s instead of --weights-dir.");
    if (!request.disk)
      throw input_error("weights on the disk: how fast is it?", "Give --disk-bandwidth 2GB/s.");
    return;
  }
  const bool is_host = request.device == "host";
  if (!is_host && request.disk) {
    if (request.disk->compressed)
      throw input_error("--compress keeps tensors in host memory: it is no disk for weights",
                        "Give --disk DIR, or keep them there as they are: --weights host.");
    if (!folder.empty() && !is_same_folder(folder, request.disk->folder))
      throw input_error(
          "a GPU's weights share the disk of its tensors, and --weights-dir is not that of --disk",
          "Give one of them.");
    return;
  }
  if (folder.empty())
    throw input_error("weights on the disk: where?", "Give a folder on that disk: --weights-dir DIR.");
  if (!is_host) request.disk = DiskRequest{folder};
}

void DiskOptions::add_to(CLI::App& app) {
  const std::string group = "Disk";
  app.add_option("--disk", folder_,
                 "host, cuda: the folder on whose disk the policy's `disk` tensors go; nothing of them is "
                 "left behind")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--disk-checksums", checksums_, "Check what comes back from the disk")->group(group);
  app.add_flag(
         "--compress", compressed_,
         "host, cuda: instead of a disk, host memory in which `disk` tensors lie compressed, without loss")
      ->group(group);
  add_disk_bandwidth_option(app, speed_, "virtual: how fast the disk is that is modelled")->group(group);
}

std::optional<DiskRequest> DiskOptions::request(const std::string& device) const {
  const bool is_virtual = device.starts_with("virtual");
  if (is_virtual && (!folder_.empty() || checksums_))
    throw input_error("on a virtual GPU the disk is modelled too: there is nothing to write",
                      "Give --disk-bandwidth 2GB/s instead of --disk.");
  if (is_virtual && compressed_)
    throw input_error("--compress needs values to compress, and a virtual GPU has none",
                      "Give --disk-bandwidth 1GB/s, as fast as a codec is on your machine.");
  if (compressed_ && !folder_.empty())
    throw input_error("--compress keeps tensors in host memory, and --disk in a folder", "Give one of them.");
  if (compressed_ && checksums_)
    throw input_error("--disk-checksums are of a folder's file: --compress has none", "Leave them out.");
  if (!is_virtual && speed_)
    throw input_error("--disk-bandwidth is for a virtual GPU: here the disk is real",
                      "Leave it out; `offprof simulate --disk-bandwidth` asks what if.");
  if (checksums_ && folder_.empty())
    throw input_error("--disk-checksums says nothing without --disk", "Give a folder: --disk DIR");
  if (folder_.empty() && !speed_ && !compressed_) return std::nullopt;
  return DiskRequest{folder_, checksums_, speed_.value_or(DiskLink{}), compressed_};
}

}  // namespace offprof
