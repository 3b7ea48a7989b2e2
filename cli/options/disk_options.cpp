#include "cli/options/disk_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/options/options.h"
#include "cli/reports/next_command.h"
#include "traces/base/error.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

bool is_same_folder(const std::string& a, const std::string& b) {
  std::error_code error;
  return a == b || std::filesystem::equivalent(a, b, error);
}

/// A GPU's parameters use the same disk as its tensors, so they cannot be on a compressed one.
void refuse_compressed_parameters(const DiskRequest& disk) {
  if (!disk.compressed) return;
  throw input_error(
      "compressed tensors are in host memory, which is not a disk for parameters",
      "Place tensors on a disk instead, or keep parameters in host memory: --offload-params host.");
}

}  // namespace

DiskLink parse_disk_speed(const std::string& text) {
  const std::size_t comma = text.find(',');
  DiskLink speed;
  speed.write.bytes_per_second = parse_bandwidth(text.substr(0, comma));
  speed.read.bytes_per_second =
      comma == std::string::npos ? speed.write.bytes_per_second : parse_bandwidth(text.substr(comma + 1));
  return speed;
}

CLI::Option* add_disk_bandwidth_option(CLI::App& app, std::optional<DiskLink>& speed,
                                       const std::string& what) {
  return add_parsed_option(
      app, "--disk-bandwidth", "WRITE[,READ]",
      [&speed](const std::string& text) { speed = parse_disk_speed(text); }, what);
}

std::string describe(const DiskLink& disk) {
  return disk.is_compressed ? "compressed memory" : "a disk";
}

const char* disk_flag(bool is_compressed) {
  return is_compressed ? "--compress" : "--disk DIR";
}

DiskLink disk_to_assume(const std::optional<DiskLink>& given, const Trace& trace, const Policy& policy) {
  const auto& parameters = trace.settings.parameters;
  DiskLink wanted = given.value_or(DiskLink{});
  wanted.is_compressed = compresses(policy);
  const DiskLink& known = trace.environment.link.disk;
  // On the host device, the time of the parameters' disk is already part of the step program's own time.
  const bool shares_disk = parameters && parameters->place == "disk" && trace.environment.device != "host";
  if (shares_disk) refuse_compressed_parameters({.folder = {}, .compressed = wanted.is_compressed});
  if (given) return wanted;
  if (shares_disk && !known.is_known())
    throw input_error("the parameters are on a disk, but the trace does not contain its speed",
                      "Give it: --disk-bandwidth 2GB/s");
  if (!uses_disk(policy) || (known.is_known() && known.is_compressed == wanted.is_compressed)) return known;
  const std::string what = wanted.is_compressed ? "compresses tensors" : "places tensors on a disk";
  throw input_error(
      fmt::format("the policy {}, but the trace does not contain the speed of {}", what, describe(wanted)),
      fmt::format("Give it: --disk-bandwidth 2GB/s, or record a trace of a run with {}",
                  disk_flag(wanted.is_compressed)));
}

void add_disk_words(std::vector<std::string>& words, const Trace& trace, const Policy& policy,
                    const DiskLink& disk) {
  const auto add = [&](const char* flag, const std::string& value) {
    const auto says_so = [&](const std::string& word) {
      return word == flag || word.starts_with(std::string(flag) + "=");
    };
    if (std::ranges::none_of(words, says_so)) words.insert(words.end(), {flag, value});
  };
  const auto& parameters = trace.settings.parameters;
  const bool has_parameters = parameters && parameters->place == "disk", has_tensors = uses_disk(policy);
  if (trace.environment.times_are_modelled) {
    if (has_parameters || has_tensors) add("--disk-bandwidth", exact_disk(disk));
    return;
  }
  if (has_tensors && !compresses(policy)) add("--disk", ".");
  if (has_parameters && (trace.environment.device == "host" || !has_tensors))
    add("--offload-params-dir", ".");
}

void share_disk_with_parameters(RunRequest& request) {
  const auto& parameters = request.settings.parameters;
  if (!parameters || parameters->place != "disk") return;
  const std::string& folder = request.parameters_folder;
  if (request.device.starts_with("virtual")) {
    if (!folder.empty())
      throw input_error("on a virtual GPU the disk of the parameters is modelled too: no file is written",
                        "Give --disk-bandwidth 2GB/s instead of --offload-params-dir.");
    if (!request.disk)
      throw input_error("parameters are on the disk, but its speed is unknown",
                        "Give --disk-bandwidth 2GB/s.");
    return refuse_compressed_parameters(*request.disk);
  }
  const bool is_host = request.device == "host";
  if (!is_host && request.disk) {
    refuse_compressed_parameters(*request.disk);
    if (!folder.empty() && !is_same_folder(folder, request.disk->folder))
      throw input_error(
          "on a GPU, parameters and tensors share one disk, but --offload-params-dir and --disk differ",
          "Give only one of them.");
    return;
  }
  if (folder.empty())
    throw input_error("parameters are on the disk, but no folder is given",
                      "Give a folder on that disk: --offload-params-dir DIR.");
  if (!is_host) request.disk = DiskRequest{folder};
}

void DiskOptions::add_to(CLI::App& app) {
  const std::string group = "Disk";
  app.add_option("--disk", folder_,
                 "host, cuda: folder on the disk for the policy's `disk` tensors; no files remain after the "
                 "run")
      ->type_name("DIR")
      ->group(group);
  app.add_flag("--disk-checksums", checksums_, "Verify checksums of the data that is read from the disk")
      ->group(group);
  app.add_flag(
         "--compress", compressed_,
         "Use compressed host memory (lossless) instead of a disk, so that tune can use its measured cost. "
         "Implied by a policy with `compress`")
      ->group(group);
  add_disk_bandwidth_option(app, speed_, "virtual: speed of the modelled disk or compression")->group(group);
}

std::optional<DiskRequest> DiskOptions::request(const std::string& device, const Policy& policy) const {
  const bool is_virtual = device.starts_with("virtual"), compressed = compressed_ || compresses(policy);
  if (is_virtual) refuse_on_virtual(compressed);
  if (compressed) refuse_with_compression(policy);
  if (!is_virtual && speed_)
    throw input_error("--disk-bandwidth needs a virtual GPU: on this device the disk is real",
                      "Omit it; `offprof simulate --disk-bandwidth` predicts times for another disk.");
  if (checksums_ && folder_.empty())
    throw input_error("--disk-checksums has no effect without --disk", "Give a folder: --disk DIR");
  if (folder_.empty() && !speed_ && !compressed) return std::nullopt;
  return DiskRequest{folder_, checksums_, speed_.value_or(DiskLink{}), compressed};
}

void DiskOptions::refuse_on_virtual(bool compressed) const {
  if (!folder_.empty() || checksums_)
    throw input_error("on a virtual GPU the disk is modelled too: no file is written",
                      "Give --disk-bandwidth 2GB/s instead of --disk.");
  if (compressed && !speed_)
    throw input_error("a virtual GPU has no values to compress",
                      "Give the speed of the codec on your machine, such as --disk-bandwidth 1GB/s.");
}

void DiskOptions::refuse_with_compression(const Policy& policy) const {
  if (uses_disk(policy) && !compresses(policy))
    throw input_error(
        "--compress replaces the disk by host memory, but the policy places tensors on a disk",
        "Write `compress` instead of `disk` in its rules, or give --disk DIR instead of --compress.");
  if (!folder_.empty())
    throw input_error("compressed tensors are in host memory, but --disk is a folder",
                      compresses(policy) ? "The policy compresses tensors: omit --disk."
                                         : "Give only one of --compress and --disk.");
  if (checksums_)
    throw input_error("--disk-checksums check a file on a disk, but compressed memory has no file",
                      "Omit --disk-checksums.");
}

}  // namespace offprof
