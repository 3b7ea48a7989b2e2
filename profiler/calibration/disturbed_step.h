#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "engine/autograd/step_listener.h"
#include "engine/devices/device.h"
#include "profiler/calibration/disturbances.h"
#include "profiler/recording/step_mark.h"
#include "traces/model/calibration.h"

namespace offprof {

/// Returns the usual time of each stretch from one pack or unpack to the next: the median over `passes`,
/// which are marked steps of one program.
std::vector<Nanoseconds> usual_stretches(const std::vector<StepMarks>& passes);

/// Disturbs a step that keeps everything, block by block, and measures what each kind of disturbance costs:
/// see calibrate_briefly.
class DisturbedStep final : public StepListener {
 public:
  /// `usual` are the usual stretches of the step, which takes about `step_ns`. `device` must outlive this
  /// object.
  DisturbedStep(Device& device, const Link& link, std::vector<Nanoseconds> usual, Nanoseconds step_ns);

  void on_step_begin() override;
  void on_pack(SavedId, const at::Tensor&, const PackRequest&, const PackDecision&) override { disturb(); }
  void on_unpack(SavedId) override { disturb(); }

  /// Adds the losses to `calibration`, once the device has been idle since the step and while it still has
  /// the step's marks. Adds nothing if the step had other stretches than usual.
  void add_losses(Calibration& calibration) const;

 private:
  /// Hooks of the step in a row that have one kind of disturbance: copies, or standstills of a length.
  struct Block {
    std::optional<std::size_t> standstill;  ///< index in kStandstills; nullopt: copies
    std::size_t begin = 0, end = 0;         ///< hooks
    std::size_t every = 1;                  ///< every so many hooks stand still
  };
  struct Hook {
    Device::TimeMark begin = Device::kFailedMark, end = Device::kFailedMark;
  };

  void plan(Nanoseconds step_ns);
  void disturb();
  Nanoseconds loss_of(const Block& block) const;
  double causes_in(const Block& block) const;
  std::vector<Nanoseconds> losses(std::optional<std::size_t> standstill) const;

  Device& device_;
  std::vector<Nanoseconds> usual_;
  std::vector<Block> blocks_;
  Bytes bytes_each_;
  CopiesBeside copies_;
  std::vector<Hook> hooks_;
  std::size_t block_ = 0;  ///< of the next hook
};

}  // namespace offprof
