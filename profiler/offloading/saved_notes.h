#pragma once

#include <ATen/record_function.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/autograd/step_listener.h"
#include "profiler/recorder/code_location.h"
#include "profiler/recorder/recompute_recorder.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Facts about the saved tensors of one step that later steps under a policy need.
struct SavedNotes {
  /// Names, the sizes of storages, and saved tensors; no events. `op` (the innermost operator) and `module`
  /// of saved tensors are empty names unless `has_origins`.
  StepProgram program;
  bool has_origins = false;
  std::vector<SavedId> backward_order;  ///< the tensors in the order in which backward first unpacked them
  std::vector<FoundRecomputation> recomputations{};  ///< that the step has shown; see RecomputeRecorder
};

/// Takes notes of the step that it listens to. One at a time in the process may ask for origins.
class NoteTaker final : public StepListener {
 public:
  /// `locate` returns the place in the code that the calling thread runs; empty: origins are not noted.
  explicit NoteTaker(CodeLocator locate);
  /// Searches for recompute steps too: see RecomputeRecorder, whose arguments these are. It holds the saved
  /// contents on the host, since the step need not fit on the device with nothing offloaded.
  void search_recomputations(Device& device, const Residents& residents) {
    recompute_.emplace(device, residents, HeldContents::kOnHost);
  }
  ~NoteTaker() override;
  NoteTaker(const NoteTaker&) = delete;
  NoteTaker& operator=(const NoteTaker&) = delete;

  void on_step_begin() override;
  void on_pack_begin() override;
  void on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
               const PackDecision& decision) override;
  void on_backward_begin(const StepCopies& copies) override {
    if (recompute_) recompute_->on_backward_begin(copies);
  }
  void on_unpack(SavedId tensor) override;

  /// Returns the notes; call it once, after the step.
  SavedNotes take();

 private:
  std::int32_t index_of(const std::string& name);
  std::int32_t storage_of(const PackRequest& request);

  CodeLocator locate_;
  std::optional<at::CallbackHandle> callback_;
  std::optional<RecomputeRecorder> recompute_;
  SavedNotes notes_;
  std::unordered_map<std::string, std::int32_t> names_;      ///< their indices
  std::unordered_map<std::int64_t, std::int32_t> storages_;  ///< indices, by PackRequest::storage
  std::vector<char> is_unpacked_;
};

}  // namespace offprof
