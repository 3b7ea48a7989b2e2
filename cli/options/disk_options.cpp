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
      "compressed tensors are in host memory: that is no disk for parameters",
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
    throw input_error("the parameters are on a disk, and the trace does not say how fast it is",
                      "Give it: --disk-bandwidth 2GB/s");
  if (!uses_disk(policy) || (known.is_known() && known.is_compressed == wanted.is_compressed)) return known;
  const std::string what = wanted.is_compressed ? "has tensors compressed" : "places tensors on a disk";
  throw input_error(
      fmt::format("the policy {}, and the trace does not say how fast {} is", what, describe(wanted)),
      fmt::format("Give it: --disk-bandwidth 2GB/s, or record a trace with run {}",
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
      throw input_error(
          "on a virtual GPU the disk of the parameters is modelled too: there is nothing to write",
          "Give --disk-bandwidth 2GB/s instead of --offload-params-dir.");
    if (!request.disk)
      throw input_error("parameters on the disk: how fast is it?", "Give --disk-bandwidth 2GB/s.");
    return refuse_compressed_parameters(*request.disk);
  }
  const bool is_host = request.device == "host";
  if (!is_host && request.disk) {
    refuse_compressed_parameters(*request.disk);
    if (!folder.empty() && !is_same_folder(folder, request.disk->folder))
      throw input_error(
          "parameters on a GPU share the disk of its tensors, and --offload-params-dir is not that of --disk",
          "Give one of them.");
    return;
  }
  if (folder.empty())
    throw input_error("parameters on the disk: where?",
                      "Give a folder on that disk: --offload-params-dir DIR.");
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
  app.add_flag("--compress", compressed_,
               "Instead of a disk, host memory in which tensors lie compressed, without loss: of a policy "
               "that says `compress` by itself; here, to measure it for tune")
      ->group(group);
  add_disk_bandwidth_option(app, speed_,
                            "virtual: how fast the disk, or what compresses, is that is modelled")
      ->group(group);
}

std::optional<DiskRequest> DiskOptions::request(const std::string& device, const Policy& policy) const {
  const bool is_virtual = device.starts_with("virtual"), compressed = compressed_ || compresses(policy);
  if (is_virtual) refuse_on_virtual(compressed);
  if (compressed) refuse_with_compression(policy);
  if (!is_virtual && speed_)
    throw input_error("--disk-bandwidth is for a virtual GPU: here the disk is real",
                      "Leave it out; `offprof simulate --disk-bandwidth` asks what if.");
  if (checksums_ && folder_.empty())
    throw input_error("--disk-checksums says nothing without --disk", "Give a folder: --disk DIR");
  if (folder_.empty() && !speed_ && !compressed) return std::nullopt;
  return DiskRequest{folder_, checksums_, speed_.value_or(DiskLink{}), compressed};
}

void DiskOptions::refuse_on_virtual(bool compressed) const {
  if (!folder_.empty() || checksums_)
    throw input_error("on a virtual GPU the disk is modelled too: there is nothing to write",
                      "Give --disk-bandwidth 2GB/s instead of --disk.");
  if (compressed && !speed_)
    throw input_error("a virtual GPU has no values to compress",
                      "Give --disk-bandwidth 1GB/s, as fast as a codec is on your machine.");
}

void DiskOptions::refuse_with_compression(const Policy& policy) const {
  if (uses_disk(policy) && !compresses(policy))
    throw input_error("--compress has host memory in the place of a disk, on which the policy places tensors",
                      "Write `compress` for `disk` in its rules, or give --disk DIR.");
  if (!folder_.empty())
    throw input_error("compressed tensors lie in host memory, and --disk is a folder",
                      compresses(policy) ? "The policy has tensors compressed: leave --disk out."
                                         : "Give one of --compress and --disk.");
  if (checksums_)
    throw input_error("--disk-checksums are of a folder's file: compressed memory has none",
                      "Leave them out.");
}

}  // namespace offprof
