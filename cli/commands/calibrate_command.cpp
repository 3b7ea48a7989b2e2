#include <fmt/format.h>

#include <cctype>
#include <functional>
#include <map>
#include <string>

#include "cli/commands/commands.h"
#include "cli/options/device_options.h"
#include "cli/options/options.h"
#include "cli/plugin/engine_loader.h"
#include "cli/reports/next_command.h"
#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "engine/devices/virtual_gpu/model/gpu_fit.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

struct CalibrateReport {
  DeviceProfile like, fitted;
  bool is_virtual = false;  ///< times were modelled, and nothing was measured
  std::string path{};       ///< of the profile; empty: it was not written
};

std::string link_text(const LinkDirection& link) {
  return fmt::format("{:.3g} GB/s, {}", link.bytes_per_second / 1e9, format_duration(link.latency_ns));
}

/// A figure of a profile: its key, its value and its text.
struct Figure {
  const char* key;
  std::function<double(const DeviceProfile&)> value;
  std::function<std::string(const DeviceProfile&)> text;
};

std::string share_text(double share) {
  return fmt::format("{:.3f}", share);
}

std::vector<Figure> figures() {
  const auto share = [](const char* key, double DeviceProfile::*member) {
    return Figure{key, [=](const DeviceProfile& profile) { return profile.*member; },
                  [=](const DeviceProfile& profile) { return share_text(profile.*member); }};
  };
  const auto time = [](const char* key, Nanoseconds DeviceProfile::*member) {
    return Figure{key, [=](const DeviceProfile& profile) { return static_cast<double>(profile.*member); },
                  [=](const DeviceProfile& profile) { return format_duration(profile.*member); }};
  };
  const auto link = [](const char* key, LinkDirection Link::*member) {
    return Figure{key, [=](const DeviceProfile& profile) { return (profile.link.*member).bytes_per_second; },
                  [=](const DeviceProfile& profile) { return link_text(profile.link.*member); }};
  };
  return {share("efficiency.memory", &DeviceProfile::memory_efficiency),
          share("efficiency.compute", &DeviceProfile::compute_efficiency),
          share("efficiency.attention", &DeviceProfile::attention_efficiency),
          share("efficiency.sustained_clock", &DeviceProfile::sustained_clock),
          time("kernels.kernel_ns", &DeviceProfile::kernel_ns),
          time("kernels.launch_ns", &DeviceProfile::launch_ns),
          share("kernels.elements_per_cycle", &DeviceProfile::elements_per_cycle),
          link("link.d2h", &Link::d2h),
          link("link.h2d", &Link::h2d),
          {"link.bidirectional_bytes_per_second",
           [](const DeviceProfile& profile) { return profile.link.bidirectional_bytes_per_second; },
           [](const DeviceProfile& profile) {
             return format_rate(profile.link.bidirectional_bytes_per_second);
           }}};
}

nlohmann::ordered_json to_json(const CalibrateReport& report) {
  nlohmann::ordered_json json = {{"device", report.fitted.device_name},
                                 {"like", report.like.name},
                                 {"times_are_modelled", report.is_virtual}};
  for (const Figure& figure : figures())
    json["figures"][figure.key] = {{"measured", figure.value(report.fitted)},
                                   {"like", figure.value(report.like)}};
  if (!report.path.empty()) json["profile"] = report.path;
  return json;
}

std::string to_text(const CalibrateReport& report, const Page& page) {
  TextTable table({{"figure", Align::kLeft}, {"measured"}, {report.like.name}});
  for (const Figure& figure : figures())
    table.add_row({figure.key, figure.text(report.fitted), figure.text(report.like)});
  std::string text =
      wrap(fmt::format("{}, beside the built-in profile {}", report.fitted.device_name, report.like.name),
           page.width, 0) +
      "\n\n" + table.render(page);
  text += times_line(report.is_virtual, page);
  text += wrap(
              "The other figures are those of the driver, or of the built-in profile: the file names the "
              "source of each.",
              page.width, 0) +
          "\n";
  if (report.path.empty()) return text;
  return text + next_line({"run", "model.pt", "--device", "virtual:" + report.path});
}

/// Returns the device's name in small letters and digits, with `-` in between: `nvidia-h100-80gb-hbm3`.
std::string name_for(const std::string& device_name) {
  std::string name;
  for (const unsigned char letter : device_name) {
    if (std::isalnum(letter) != 0)
      name += static_cast<char>(std::tolower(letter));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  if (name.ends_with('-')) name.pop_back();
  return name.empty() ? "gpu" : name;
}

/// Returns the sources of the figures, for the file.
std::map<std::string, std::string> sources(const std::string& like, bool is_virtual) {
  const std::string measured = is_virtual ? "offprof calibrate on a virtual GPU, whose times are modelled"
                                          : "measured by offprof calibrate on this GPU";
  return {
      {"memory", fmt::format("reported by the driver. bytes_per_second: that of profile {}, by bus width and "
                             "clock. latency_ns, context_bytes: those of profile {}",
                             like, like)},
      {"multiprocessors", "reported by the driver"},
      {"flops_per_second",
       fmt::format("those of profile {}, by number and clock of the multiprocessors", like)},
      {"efficiency", fmt::format("{}: add_, mm and flash attention in bfloat16, relative to the peaks above. "
                                 "sustained_clock: mm after three seconds of it",
                                 measured)},
      {"kernels",
       fmt::format("{}: add_ of one element; mul_ with a broadcast column. elements_per_cycle: that of "
                   "profile {} if the memory bounds the latter",
                   measured, like)},
      {"host", fmt::format("those of profile {}", like)},
      {"link", fmt::format("{}: copies of 4 KiB and 256 MiB of pinned memory, and of 256 MiB in both "
                           "directions at once",
                           measured)}};
}

class CalibrateCommand : public Subcommand {
 public:
  void add_options(CLI::App& app) override {
    app.add_option("--device", device_name_,
                   "GPU to measure: cuda or cuda:N; virtual:PROFILE returns the figures of that profile "
                   "(default cuda)")
        ->type_name("DEVICE");
    app.add_option("--like", like_,
                   "Built-in profile or profile file whose peak rates count (default: the one of the "
                   "device's name, else of its compute capability)")
        ->type_name("PROFILE");
    add_output_option(app, output_,
                      "File for the profile, which --device virtual:FILE takes (default: none)");
  }

  ExitStatus run(Context& context) override {
    if (!output_.empty()) check_writable(output_);
    if (device_name_ != "cuda" && !device_name_.starts_with("cuda:") && !device_name_.starts_with("virtual"))
      throw input_error(fmt::format("'{}' is no GPU", device_name_), "Choose one: --device cuda");
    CalibrateReport report;
    report.is_virtual = device_name_.starts_with("virtual");
    report.path = output_ == "-" ? "" : output_;
    const GpuMeasurements measured = measure(context);
    report.like = like_.empty() ? profile_like(measured.properties) : load_profile(like_);
    report.fitted = fit_profile(report.like, measured, name_for(measured.properties.device_name));
    if (!output_.empty())
      context.print(format_profile(report.fitted, sources(report.like.name, report.is_virtual)), output_);
    context.publish_beside(report, output_);
    return ExitStatus::kOk;
  }

 private:
  GpuMeasurements measure(Context& context) {
    StatusLine status = context.status_line();
    status.show("loading LibTorch");
    device_.choose(device_name_);
    const std::string device = device_.open(context, std::nullopt);
    return load_engine().measure_gpu(device, [&](const std::string& what) {
      status.show(what);
      context.detail(what);
    });
  }

  DeviceOptions device_;
  std::string device_name_ = "cuda", like_, output_;
};

}  // namespace

std::unique_ptr<Subcommand> make_calibrate_command() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace offprof
