#include "profiler/calibration/disturbed_step.h"

#include <algorithm>
#include <iterator>

namespace offprof {
namespace {

/// Samples of each kind of disturbance: enough for quartiles.
constexpr std::size_t kSamples = 5;

std::vector<Nanoseconds> hook_times(const StepMarks& marks) {
  std::vector<Nanoseconds> times;
  for (const StepMark& mark : marks)
    if (mark.kind != EventKind::kPhase) times.push_back(mark.stream_ns);
  return times;
}

}  // namespace

std::vector<Nanoseconds> usual_stretches(const std::vector<StepMarks>& passes) {
  std::vector<std::vector<Nanoseconds>> times;
  for (const StepMarks& marks : passes) times.push_back(hook_times(marks));
  const auto least = std::ranges::min_element(times, {}, [](const auto& of_pass) { return of_pass.size(); });
  std::vector<Nanoseconds> usual;
  for (std::size_t i = 1; least != times.end() && i < least->size(); ++i) {
    std::vector<Nanoseconds> stretch;
    for (const auto& of_pass : times) stretch.push_back(of_pass[i] - of_pass[i - 1]);
    usual.push_back(median_of(std::move(stretch)));
  }
  return usual;
}

DisturbedStep::DisturbedStep(Device& device, const Link& link, std::vector<Nanoseconds> usual,
                             Nanoseconds step_ns)
    : device_(device),
      usual_(std::move(usual)),
      bytes_each_(bytes_beside(link, step_ns, usual_.size() + 1)),
      copies_(device, bytes_each_) {
  plan(step_ns);
}

/// Divides the hooks among the blocks. The long standstills of a step, one at the beginning of each of their
/// blocks, decide the number of blocks.
void DisturbedStep::plan(Nanoseconds step_ns) {
  std::vector<std::optional<std::size_t>> kinds = {std::nullopt};
  if (device_.torch_device().is_cpu())
    for (std::size_t i = 0; i < std::size(kStandstills); ++i) kinds.emplace_back(i);
  const std::size_t hooks = usual_.size() + 1;
  const Nanoseconds standing_each = std::max(step_ns, kLeastStanding) / std::ssize(kinds);
  const auto wanted = [&](std::size_t i) {
    return std::max(static_cast<std::size_t>(standing_each / kStandstills[i]), kSamples);
  };
  const std::size_t longest = std::size(kStandstills) - 1;
  const std::size_t count = std::min(wanted(longest) * kinds.size(), hooks);
  for (std::size_t b = 0; b < count; ++b) {
    Block block{kinds[b % kinds.size()], b * hooks / count, (b + 1) * hooks / count};
    const std::size_t hooks_each = block.end - block.begin;
    if (block.standstill == longest)
      block.every = hooks_each;
    else if (block.standstill)
      block.every = std::max<std::size_t>(hooks / kinds.size() / wanted(*block.standstill), 1);
    blocks_.push_back(block);
  }
}

void DisturbedStep::on_step_begin() {
  hooks_.clear();
  block_ = 0;
}

void DisturbedStep::disturb() {
  const std::size_t hook = hooks_.size();
  hooks_.push_back({.begin = device_.mark()});
  if (block_ < blocks_.size() && hook == blocks_[block_].end) ++block_;
  if (block_ < blocks_.size()) {
    const Block& block = blocks_[block_];
    if (!block.standstill)
      copies_.copy();
    else if ((hook - block.begin) % block.every == 0)
      stand_still(device_, kStandstills[*block.standstill]);
  }
  hooks_.back().end = device_.mark();
}

/// Returns the time that the stretches after the block's hooks took beyond their usual time.
Nanoseconds DisturbedStep::loss_of(const Block& block) const {
  Nanoseconds loss = 0;
  for (std::size_t i = block.begin; i < block.end && i < usual_.size(); ++i)
    loss += device_.time_of(hooks_[i + 1].begin) - device_.time_of(hooks_[i].end) - usual_[i];
  return loss;
}

/// Returns the MiB that were copied, or the number of standstills.
double DisturbedStep::causes_in(const Block& block) const {
  const auto hooks = static_cast<double>(block.end - block.begin);
  if (!block.standstill) return hooks * static_cast<double>(bytes_each_) / kMiB;
  return static_cast<double>((block.end - block.begin + block.every - 1) / block.every);
}

/// Returns samples of the loss for each cause of that kind.
std::vector<Nanoseconds> DisturbedStep::losses(std::optional<std::size_t> standstill) const {
  std::vector<Nanoseconds> loss(kSamples);
  std::vector<double> causes(kSamples);
  std::size_t next = 0;
  for (const Block& block : blocks_) {
    if (block.standstill != standstill) continue;
    const std::size_t sample = next++ % kSamples;
    loss[sample] += loss_of(block);
    causes[sample] += causes_in(block);
  }
  std::vector<Nanoseconds> losses;
  for (std::size_t i = 0; i < kSamples; ++i)
    if (causes[i] > 0) losses.push_back(static_cast<Nanoseconds>(static_cast<double>(loss[i]) / causes[i]));
  return losses;
}

void DisturbedStep::add_losses(Calibration& calibration) const {
  if (hooks_.size() != usual_.size() + 1) return;
  if (auto beside = losses(std::nullopt); !beside.empty())
    calibration.slowdown_per_mib = summarize_losses(std::move(beside));
  for (std::size_t i = 0; i < std::size(kStandstills); ++i)
    if (auto standing = losses(i); !standing.empty())
      calibration.standstills.push_back({kStandstills[i], summarize_losses(std::move(standing))});
}

}  // namespace offprof
