#include "profiler/offloading/saved_notes.h"

#include <utility>

#include "engine/torch/dtype_name.h"

namespace offprof {
namespace {

/// Operators that run on this thread, outermost first. LibTorch calls plain functions, which find them here.
thread_local std::vector<std::string> open_ops;
/// Path of the module that saves a tensor on this thread, between on_pack_begin and on_pack.
thread_local std::string packing_module;

std::unique_ptr<at::ObserverContext> op_begins(const at::RecordFunction& op) {
  open_ops.emplace_back(op.name());
  return nullptr;
}

void op_ends(const at::RecordFunction&, at::ObserverContext*) {
  if (!open_ops.empty()) open_ops.pop_back();  // empty: the operator is older than the callback
}

}  // namespace

NoteTaker::NoteTaker(CodeLocator locate) : locate_(std::move(locate)) {
  notes_.has_origins = static_cast<bool>(locate_);
  if (!locate_) return;
  open_ops.clear();
  callback_ =
      at::addGlobalCallback(at::RecordFunctionCallback(&op_begins, &op_ends)
                                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

NoteTaker::~NoteTaker() {
  if (callback_) at::removeCallback(*callback_);
}

void NoteTaker::on_step_begin() {
  if (recompute_) recompute_->on_step_begin();
}

SavedNotes NoteTaker::take() {
  if (recompute_) notes_.recomputations = recompute_->take();
  return std::move(notes_);
}

void NoteTaker::on_pack_begin() {
  if (locate_) packing_module = locate_().module;
}

void NoteTaker::on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
                        const PackDecision& decision) {
  if (recompute_) recompute_->on_pack(tensor, value, request, decision);
  TensorLayout layout{std::string(dtype_name(value.scalar_type())), value.sizes().vec(), {}};
  if (request.movability == Movability::kMovable) layout.strides = value.strides().vec();
  SavedTensor saved;
  saved.storage = storage_of(request);
  saved.version = request.version;
  saved.movability = request.movability;
  saved.is_parameter = request.is_parameter;
  saved.layout = std::move(layout);
  saved.bytes = request.tensor_bytes;
  saved.op = index_of(!locate_ ? "" : open_ops.empty() ? "(outside an operator)" : open_ops.back());
  saved.module = index_of(locate_ ? packing_module : "");
  notes_.program.saved.push_back(std::move(saved));
  is_unpacked_.push_back(0);
}

std::int32_t NoteTaker::index_of(const std::string& name) {
  const auto [found, is_new] = names_.try_emplace(name, static_cast<std::int32_t>(names_.size()));
  if (is_new) notes_.program.names.push_back(name);
  return found->second;
}

/// Returns the index of the tensor's storage; -1: it has none that is known.
std::int32_t NoteTaker::storage_of(const PackRequest& request) {
  if (request.storage == 0) return -1;
  const auto [found, is_new] =
      storages_.try_emplace(request.storage, static_cast<std::int32_t>(storages_.size()));
  if (is_new) notes_.program.storages.push_back({.bytes = request.storage_bytes});
  return found->second;
}

void NoteTaker::on_unpack(SavedId tensor) {
  if (std::exchange(is_unpacked_[static_cast<std::size_t>(tensor)], 1) == 0)
    notes_.backward_order.push_back(tensor);
}

}  // namespace offprof
