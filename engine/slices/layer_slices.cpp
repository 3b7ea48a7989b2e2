#include "engine/slices/layer_slices.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "engine/checkpointing/autocast_use.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr const char* kAdvice =
    "give --slices another number, so that the model is cut elsewhere, or give --checkpoint submodules that "
    "can be checkpointed";

/// Names at most three of the branches.
std::string branches_text(const std::vector<std::string>& branches) {
  constexpr std::size_t kMost = 3;
  if (branches.empty()) return {};
  const std::span named(branches.data(), std::min(branches.size(), kMost));
  const std::string more =
      branches.size() > kMost ? fmt::format(" and {} more", branches.size() - kMost) : "";
  return fmt::format("the code inside these is not cut: {}{}; ", fmt::join(named, ", "), more);
}

Error too_many(std::int64_t count, std::size_t most, const std::vector<std::string>& branches) {
  const std::string held = branches_text(branches);
  if (most == 1)
    return input_error(
        fmt::format("--slices {}: the model's forward cannot be cut anywhere", count),
        held +
            "export the model with torch.jit.trace, with its submodules in sequence, none of which edits its "
            "inputs in place");
  return input_error(
      fmt::format("--slices {}: the model can be cut into at most {} slices", count, most),
      fmt::format(
          "{}give --slices {} or fewer, or auto; a model is cut before submodules that call no submodules "
          "and do not edit earlier values in place, but not inside branches and loops",
          held, most));
}

std::string slice_name(std::size_t number, const std::string& first, const std::string& last) {
  if (first.empty()) return fmt::format("slice {}", number);
  return fmt::format("slice {} ({})", number, first == last ? first : first + " to " + last);
}

}  // namespace

LayerSlices::LayerSlices(const torch::jit::Module& model, const std::vector<c10::IValue>& inputs,
                         std::optional<std::int64_t> count, c10::Device device)
    : model_(model), device_(device) {
  refuse_autocast(model_, "slices");
  const ForwardGraph forward(model_);
  values_ = forward.values();
  result_ = forward.result();
  build(forward, measure_pieces(forward, model_, inputs, device_), count);
  find_last_uses();
  find_shared_parameters();
}

void LayerSlices::build(const ForwardGraph& forward, const PieceCosts& costs,
                        std::optional<std::int64_t> count) {
  const std::size_t most = most_slices(costs);
  if (count && *count > static_cast<std::int64_t>(most)) throw too_many(*count, most, forward.branches());
  const SlicePlan plan = plan_slices(costs, count);
  for (std::size_t i = 0; i < plan.first_pieces.size(); ++i) {
    const std::size_t first = plan.first_pieces[i];
    const std::size_t end = i + 1 < plan.first_pieces.size() ? plan.first_pieces[i + 1] : forward.pieces();
    add(forward.part(first, end), forward.piece_name(first), forward.piece_name(end - 1));
  }
}

void LayerSlices::add(ForwardGraph::Part part, const std::string& first_name, const std::string& last_name) {
  CheckpointedModule module{
      slice_name(slices_.size() + 1, first_name, last_name), first_name, {}, kAdvice, part.function.get(),
      written_attributes(*part.function, *model_.type()),    device_};
  slices_.push_back({std::move(part.function),
                     std::move(module),
                     std::move(part.inputs),
                     std::move(part.outputs),
                     {},
                     parameters_in(part.attributes)});
}

void LayerSlices::find_last_uses() {
  std::set<ValueId> used_later = {result_};
  for (std::size_t i = slices_.size(); i-- > 0;)
    for (const ValueId value : slices_[i].inputs)
      if (used_later.insert(value).second) slices_[i].last_uses.push_back(value);
}

void LayerSlices::find_shared_parameters() {
  std::map<const c10::TensorImpl*, std::size_t> users;
  for (const Slice& slice : slices_)
    for (const at::Tensor& weight : slice.parameters) ++users[weight.unsafeGetTensorImpl()];
  std::set<const c10::TensorImpl*> seen;
  for (Slice& slice : slices_)
    for (const at::Tensor& weight : slice.parameters)
      if (weight.requires_grad() && users.at(weight.unsafeGetTensorImpl()) > 1)
        slice.shared.push_back({weight, seen.insert(weight.unsafeGetTensorImpl()).second});
}

Bytes LayerSlices::most_weight_bytes() const {
  Bytes most = 0;
  for (const Slice& slice : slices_) {
    Bytes bytes = 0;
    for (const at::Tensor& weight : slice.parameters) bytes += static_cast<Bytes>(weight.nbytes());
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace offprof
