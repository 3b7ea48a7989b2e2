#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/autograd/step_listener.h"
#include "engine/devices/device.h"
#include "engine/recompute/random_draws.h"
#include "engine/recompute/recompute.h"
#include "profiler/recorder/operator_notes.h"
#include "profiler/recorder/recompute_builder.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Where a RecomputeRecorder keeps the saved contents until backward begins.
enum class HeldContents : std::uint8_t {
  kOnDevice,  ///< where they are: for a step with nothing offloaded
  kOnHost,    ///< as copies, those of the engine where it has some, for a step with everything offloaded
};

/// Finds in a step how its saved contents can be recomputed. It records the arguments and results of
/// operators. When backward begins, it runs the operators that produced a saved
/// content once more on the contents as they were saved. The result must equal the content bit by bit (on a
/// device without values: it must have the same size and layout).
///
/// On the device it also checks that the contents are unchanged until backward. Copies on the host are
/// unchanged by nature, as are those of a policy that offloads.
///
/// A content has no recompute steps if one of its operators is neither deterministic nor draws its random
/// numbers from a default generator (recomputable_ops.h, random_draws.h), or if it takes more than
/// kMostRecomputeSteps operators. Each argument must be recomputed the same way or held anyway: a saved
/// content that was saved before, or a parameter, buffer or input of the step, none of them changed in place
/// by then.
///
/// Listens from the beginning of the step, on the thread that begins it. One at a time in the process.
class RecomputeRecorder final : public StepListener {
 public:
  /// `residents` are those of the step. Both must outlive the recorder.
  RecomputeRecorder(Device& device, const Residents& residents, HeldContents held = HeldContents::kOnDevice);

  void on_step_begin() override;
  void on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
               const PackDecision& decision) override;
  void on_backward_begin(const StepCopies& copies) override;

  /// Returns the recompute steps in the order of their tensors; call it once, after the step.
  std::vector<FoundRecomputation> take() { return std::move(found_); }
  /// Returns true if the step saved the same tensors as the program.
  bool saw(const StepProgram& program) const;

 private:
  struct Saved {
    PackRequest request;
    WatchedContent content{};
    at::Tensor value;  ///< held until backward begins; undefined if it is held on the host
    bool is_on_host = false;
    CopyId copy = -1;       ///< the engine's, which has the bytes of its storage; -1: none
    at::Tensor host_bytes;  ///< of its storage; undefined on a device without values
    /// of the bytes as they were saved; only for the first tensor of a content
    std::size_t digest = 0;
    std::optional<bool> is_as_saved{};  ///< if the bytes are unchanged in backward; empty until checked
  };

  void find();
  void try_recomputation(SavedId tensor, const std::shared_ptr<const std::vector<Draw>>& draws);
  bool is_first_of_content(SavedId tensor) const;
  std::size_t digest_of(const at::Tensor& value) const;
  SavedId first_of_content(AllocationId allocation, const WatchedContent& content) const;
  bool is_as_saved(SavedId tensor);
  SavedId source_of(const NotedArgument& argument, SavedId before);
  bool is_held(const Saved& saved) const;
  c10::Storage storage_of(SavedId tensor) const;
  bool proves(FoundRecomputation& found) const;

  Device& device_;
  const Residents& residents_;
  HeldContents held_;
  bool has_values_;  ///< of the device
  bool is_forward_ = true;
  std::optional<OperatorNotes> notes_;
  std::vector<Saved> saved_;
  std::map<AllocationId, std::vector<SavedId>> saved_of_;
  std::vector<FoundRecomputation> found_;
};

/// Returns the recomputations that two steps of the program agree on, except for times. One that they
/// disagree on could fail in a third step.
std::vector<FoundRecomputation> agreed(std::vector<FoundRecomputation> first,
                                       const std::vector<FoundRecomputation>& second);

}  // namespace offprof
