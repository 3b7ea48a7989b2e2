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
  if (!locate_) return;
  open_ops.clear();
  callback_ =
      at::addGlobalCallback(at::RecordFunctionCallback(&op_begins, &op_ends)
                                .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

NoteTaker::~NoteTaker() {
  if (callback_) at::removeCallback(*callback_);
}

void NoteTaker::on_pack_begin() {
  if (locate_) packing_module = locate_().module;
}

void NoteTaker::on_pack(SavedId, const at::Tensor& value, const PackRequest&, const PackDecision&) {
  SavedTensor& saved = notes_.saved.emplace_back();
  saved.layout = TensorLayout{std::string(dtype_name(value.scalar_type())), value.sizes().vec(), {}};
  is_unpacked_.push_back(0);
  if (locate_)
    notes_.origins.push_back({open_ops.empty() ? "(outside an operator)" : open_ops.back(), packing_module});
}

void NoteTaker::on_unpack(SavedId tensor) {
  if (std::exchange(is_unpacked_[static_cast<std::size_t>(tensor)], 1) == 0)
    notes_.backward_order.push_back(tensor);
}

}  // namespace offprof
