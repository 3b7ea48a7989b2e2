#include "cli/tables/tracing_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace offprof {
namespace {

constexpr double kPercent = 100.0;

std::string signed_share(double share) {
  return fmt::format("{:+.1f}%", kPercent * share);
}

/// Returns the variation of step times if it exceeds the cost of tracing, which is then uncertain; else an
/// empty string.
std::string variation_text(const TracingCost& cost) {
  const double spread = std::max(cost.untraced.relative_spread(), cost.everything.relative_spread());
  if (spread <= std::abs(relative_cost(cost.untraced, cost.everything))) return "";
  return fmt::format("; steps vary by {:.1f}%", kPercent * spread);
}

std::string cost_text(const std::string& tool, const std::optional<TracingCost>& cost) {
  if (!cost) return "cost not measured";
  const auto share = [&](const MeasuredQuartiles& traced) {
    return signed_share(relative_cost(cost->untraced, traced));
  };
  return fmt::format("{} of a step ({} alone: {}, of kernels and copies only: {}; recorder alone: {}{})",
                     share(cost->everything), tool, share(cost->tracer), share(cost->streams),
                     share(cost->recorder), variation_text(*cost));
}

std::string tracing_text(const Tracing& tracing) {
  std::string text = fmt::format("{} {}: {}, {}, {} of host memory", tracing.tool, tracing.version,
                                 cost_text(tracing.tool, tracing.cost), losses_text(tracing),
                                 format_bytes(tracing.host_bytes));
  if (tracing.device_bytes) text += fmt::format(", {} of device memory", format_bytes(*tracing.device_bytes));
  if (tracing.lost_records()) text += "; GPU activity is incomplete";
  return text;
}

/// Returns `52.1 GB/s to host (96% of calibrated)`; empty if there were no large copies.
std::string achieved_text(const std::optional<double>& achieved, const LinkDirection& calibrated,
                          const char* where) {
  if (!achieved) return "";
  std::string text = fmt::format("{} {}", format_rate(*achieved), where);
  if (calibrated.bytes_per_second > 0)
    text += fmt::format(" ({:.0f}% of calibrated)", kPercent * *achieved / calibrated.bytes_per_second);
  return text;
}

std::string large_copies_text(const Tracing& tracing, const Link& link) {
  const std::string out = achieved_text(achieved_rate(tracing, &GpuFigures::d2h), link.d2h, "to host");
  const std::string in = achieved_text(achieved_rate(tracing, &GpuFigures::h2d), link.h2d, "to device");
  if (out.empty() && in.empty()) return "";
  return fmt::format("of {} and more: {}{}{}", format_bytes(kLargeCopy), out,
                     out.empty() || in.empty() ? "" : ", ", in);
}

std::string beside_allocator_text(const MemoryBesideAllocator& memory) {
  return fmt::format(
      "{} of device memory outside PyTorch's allocator at the start, {} after warm-up, {} at the end",
      format_bytes(memory.before_bytes), format_bytes(memory.warm_bytes), format_bytes(memory.end_bytes));
}

}  // namespace

std::vector<LabelledLine> tracing_lines(const std::optional<Tracing>& tracing,
                                        const Environment& environment) {
  std::vector<LabelledLine> lines;
  if (tracing) {
    lines.push_back({"tracing", tracing_text(*tracing), tracing->lost_records() ? Tone::kBad : Tone::kPlain});
    const std::string copies = large_copies_text(*tracing, environment.link);
    if (!copies.empty()) lines.push_back({"copies", copies});
  }
  if (const auto& memory = environment.beside_allocator; memory && !environment.times_are_modelled)
    lines.push_back({"CUDA", beside_allocator_text(*memory)});
  return lines;
}

void add_tracing_figures(nlohmann::ordered_json& report, const std::optional<Tracing>& tracing) {
  if (!tracing) return;
  nlohmann::ordered_json& json = report["tracing"];
  if (const auto& cost = tracing->cost)
    json["relative_cost"] = {{"streams", relative_cost(cost->untraced, cost->streams)},
                             {"tracer", relative_cost(cost->untraced, cost->tracer)},
                             {"recorder", relative_cost(cost->untraced, cost->recorder)},
                             {"everything", relative_cost(cost->untraced, cost->everything)}};
  if (const auto rate = achieved_rate(*tracing, &GpuFigures::d2h)) json["d2h_bytes_per_second"] = *rate;
  if (const auto rate = achieved_rate(*tracing, &GpuFigures::h2d)) json["h2d_bytes_per_second"] = *rate;
}

}  // namespace offprof
