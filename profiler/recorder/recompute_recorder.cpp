#include "profiler/recorder/recompute_recorder.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/record_function.h>
#include <dlfcn.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "engine/autograd/held_tensor.h"
#include "engine/autograd/step_copies.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "profiler/recorder/measured_use.h"
#include "profiler/recorder/recompute_builder.h"

namespace offprof {
namespace {

/// Returns the storage as a tensor of bytes.
at::Tensor bytes_of(const c10::Storage& storage) {
  return view_storage(storage, {at::kByte, {static_cast<std::int64_t>(storage.nbytes())}, {1}});
}

/// Returns the bytes of the tensor's storage on the host, without a history, and without operators that a
/// recording would see.
at::Tensor unheard_bytes_of(const at::Tensor& value) {
  const at::AutoDispatchBelowAutograd below_autograd;
  const at::DisableRecordFunctionGuard unheard;
  return bytes_of(value.storage()).cpu();
}

/// Returns true if both storages on the device, of the same size, have the same bytes.
bool have_equal_bytes(const c10::Storage& a, const c10::Storage& b) {
  const at::DisableRecordFunctionGuard unheard;
  return at::equal(bytes_of(a), bytes_of(b));
}

/// Returns true if the engine copies the storage to the host as it is: see StepCopies.
bool is_whole_copy(const at::Tensor& value, const PackRequest& request, const PackDecision& decision) {
  return decision.copy >= 0 && is_dense(value) && request.tensor_bytes == request.storage_bytes;
}

/// Returns the bytes of a finished copy in host memory; undefined if it is elsewhere, encoded or partial.
at::Tensor bytes_of_copy(const StepCopies::Copy& copy, Bytes bytes) {
  if (copy.host == nullptr || copy.transform || copy.bytes != bytes) return {};
  return at::from_blob(copy.host, {bytes}, at::TensorOptions(at::kByte));
}

/// Returns a copy of them, also if the device is the host itself.
at::Tensor copied_bytes_of(const at::Tensor& value) {
  const at::DisableRecordFunctionGuard unheard;
  const at::Tensor bytes = unheard_bytes_of(value);
  return value.is_cpu() ? bytes.clone() : bytes;
}

/// Returns a text of the recompute steps, without their times.
std::string text_of(const FoundRecomputation& found) {
  std::ostringstream text;
  text << found.recomputation.tensor << ' ' << text_of_steps(found);
  if (found.executable.draws)
    for (const Draw& draw : *found.executable.draws) text << draw.op << draw.packed;
  for (const TransformMemory& step : found.recomputation.use.memory)
    text << step.bytes << ',' << step.freed << ' ';
  return text.str();
}

bool is_movable(const PackRequest& request) {
  return request.movability == Movability::kMovable;
}

/// Returns false on a virtual GPU: the device itself, or CUDA's in a process of `offprof exec`.
bool has_values(const Device& device) {
  if (device.is_virtual()) return false;
  return device.torch_device().is_cpu() || dlsym(RTLD_DEFAULT, kVirtualGpuSymbol) == nullptr;
}

}  // namespace

RecomputeRecorder::RecomputeRecorder(Device& device, const Residents& residents, HeldContents held)
    : device_(device), residents_(residents), held_(held), has_values_(has_values(device)) {
  on_step_begin();
}

void RecomputeRecorder::on_step_begin() {
  saved_.clear();
  saved_of_.clear();
  found_.clear();
  is_forward_ = true;
  notes_.reset();  // only one may exist
  notes_.emplace(device_, residents_);
}

void RecomputeRecorder::on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
                                const PackDecision& decision) {
  Saved& saved = saved_.emplace_back();
  saved.request = request;
  notes_->add_saved(value);
  if (!is_forward_ || !(is_movable(request) || request.movability == Movability::kInput)) return;
  saved.content = content_of(value);
  saved.is_on_host = held_ == HeldContents::kOnHost && is_movable(request);
  if (!saved.is_on_host) saved.value = at::Tensor(shell_of(value));
  if (first_of_content(request.storage, saved.content) < 0) {
    if (!saved.is_on_host)
      saved.digest = digest_of(value);
    else if (has_values_ && is_whole_copy(value, request, decision))
      saved.copy = decision.copy;
    else if (has_values_)
      saved.host_bytes = copied_bytes_of(value);
  }
  saved_of_[request.storage].push_back(tensor);
}

/// Forward is done, and everything that it saved is available.
void RecomputeRecorder::on_backward_begin(const StepCopies& copies) {
  if (!std::exchange(is_forward_, false)) return;
  notes_->stop();
  if (has_values_) device_.synchronize();  // all copies to the host have ended
  for (Saved& saved : saved_)
    if (saved.copy >= 0) saved.host_bytes = bytes_of_copy(copies[saved.copy], saved.request.storage_bytes);
  find();
  for (Saved& saved : saved_) saved.value = saved.host_bytes = at::Tensor();
}

bool RecomputeRecorder::saw(const StepProgram& program) const {
  return std::ranges::equal(saved_, program.saved, [](const Saved& saved, const SavedTensor& expected) {
    return saved.request.movability == expected.movability && saved.request.version == expected.version &&
           saved.request.tensor_bytes == expected.bytes;
  });
}

void RecomputeRecorder::find() {
  const at::AutoDispatchBelowAutograd below_autograd;
  const auto draws = std::make_shared<const std::vector<Draw>>(notes_->draws().list());
  for (SavedId tensor = 0; tensor < static_cast<SavedId>(saved_.size()); ++tensor)
    if (const Saved& saved = saved_[tensor];
        is_movable(saved.request) && is_held(saved) && is_first_of_content(tensor))
      try_recomputation(tensor, draws);
}

bool RecomputeRecorder::is_held(const Saved& saved) const {
  if (!saved.is_on_host) return saved.value.defined();
  return !has_values_ || saved.host_bytes.defined();
}

bool RecomputeRecorder::is_first_of_content(SavedId tensor) const {
  const PackRequest& request = saved_[tensor].request;
  return std::ranges::none_of(saved_of_.at(request.storage), [&](SavedId other) {
    return other < tensor && saved_[other].request.version == request.version;
  });
}

void RecomputeRecorder::try_recomputation(SavedId tensor,
                                          const std::shared_ptr<const std::vector<Draw>>& draws) {
  const Saved& saved = saved_[tensor];
  const NotedResult* const made = notes_->maker_of(saved.request.storage, saved.content);
  if (made == nullptr || !saved.content.is_unchanged()) return;
  RecomputeBuilder builder(tensor,
                           [&](const NotedArgument& argument) { return source_of(argument, tensor); });
  auto found = builder.build(*made);
  if (!found) return;
  const auto& steps = found->executable.steps;
  if (std::ranges::any_of(steps, [](const RecomputeStep& step) { return step.draw.has_value(); }))
    found->executable.draws = draws;
  if (proves(*found)) found_.push_back(std::move(*found));
}

/// Autograd does not report all changes, for example those of batch norm's running statistics. A digest
/// detects them.
std::size_t RecomputeRecorder::digest_of(const at::Tensor& value) const {
  if (!has_values_) return 0;
  const at::Tensor bytes = unheard_bytes_of(value);
  return std::hash<std::string_view>()(
      {static_cast<const char*>(bytes.const_data_ptr()), static_cast<std::size_t>(bytes.numel())});
}

/// Returns the first saved tensor with that content; -1: none was saved.
SavedId RecomputeRecorder::first_of_content(AllocationId allocation, const WatchedContent& content) const {
  const auto saved = saved_of_.find(allocation);
  if (saved == saved_of_.end()) return -1;
  const auto found = std::ranges::find_if(
      saved->second, [&](SavedId tensor) { return is_same_content(saved_[tensor].content, content); });
  return found == saved->second.end() ? -1 : *found;
}

/// Returns true if the bytes are unchanged in backward. `tensor` is the first one with its content.
bool RecomputeRecorder::is_as_saved(SavedId tensor) {
  Saved& saved = saved_[tensor];
  if (!saved.is_as_saved)
    saved.is_as_saved = saved.is_on_host ? is_held(saved) : digest_of(saved.value) == saved.digest;
  return *saved.is_as_saved;
}

/// Returns the first saved tensor with the argument's content; -1: there is none before, or it was changed.
SavedId RecomputeRecorder::source_of(const NotedArgument& argument, SavedId before) {
  if (!argument.content.is_unchanged()) return -1;
  const SavedId found = first_of_content(argument.allocation, argument.content);
  return found >= 0 && found < before && is_as_saved(found) ? found : -1;
}

/// Returns a storage on the device with the content of a saved tensor; a copy if it is held on the host.
c10::Storage RecomputeRecorder::storage_of(SavedId tensor) const {
  const Saved& saved = saved_[tensor];
  if (!saved.is_on_host) return saved.value.storage();
  const at::DisableRecordFunctionGuard unheard;
  const at::Tensor bytes =
      at::empty({saved.request.storage_bytes}, at::TensorOptions(at::kByte).device(device_.torch_device()));
  if (saved.host_bytes.defined()) bytes.copy_(saved.host_bytes);
  return bytes.storage();
}

/// Recomputes the content, checks it, and records the cost.
bool RecomputeRecorder::proves(FoundRecomputation& found) const {
  const SavedId tensor = found.recomputation.tensor;
  const Bytes expected_bytes = saved_[tensor].request.storage_bytes;
  std::map<SavedId, c10::Storage> sources;  // made before the cost is measured
  const RecomputeInputs inputs = {
      [&](SavedId source) { return sources.at(source); },
      [&](std::size_t draw) -> const RngState& { return notes_->draws().state_before(draw); }};
  at::Tensor made;
  bool is_exact = true;
  try {
    for (const RecomputeStep& step : found.executable.steps)
      for (const RecomputeArgument& argument : step.arguments)
        if (argument.source >= 0 && !sources.contains(argument.source))
          sources.emplace(argument.source, storage_of(argument.source));
    const c10::Storage expected = has_values_ ? storage_of(tensor) : c10::Storage();
    found.recomputation.use = use_of(
        device_, [&] { made = recompute(found.executable, inputs); },
        [&] {
          is_exact = is_exact && static_cast<Bytes>(made.storage().nbytes()) == expected_bytes &&
                     (!has_values_ || have_equal_bytes(made.storage(), expected));
          made = at::Tensor();
        });
  } catch (const std::exception&) {
    device_.take_out_of_memory();
    return false;
  }
  Bytes left = 0;
  std::set<std::int32_t> live;
  std::int32_t number = 0;
  for (const TransformMemory& step : found.recomputation.use.memory) {
    if (step.bytes > 0)
      live.insert(number++), left = step.bytes;
    else
      live.erase(step.freed);
  }
  return is_exact && live.size() == 1 && left > 0;
}

std::vector<FoundRecomputation> agreed(std::vector<FoundRecomputation> first,
                                       const std::vector<FoundRecomputation>& second) {
  std::set<std::string> others;
  for (const FoundRecomputation& found : second) others.insert(text_of(found));
  std::erase_if(first, [&](const FoundRecomputation& found) { return !others.contains(text_of(found)); });
  return first;
}

}  // namespace offprof
