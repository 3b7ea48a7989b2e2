#include "engine/devices/cuda/view_lists.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "engine/devices/cuda/values_on_cpu.h"

namespace offprof {
namespace {

constexpr std::array<std::string_view, 2> kMakers = {"aten::chunk", "aten::split"};

/// Operators of which a call takes `once`, and `for_each` for each view.
struct Calls {
  std::int64_t once = 0, for_each = 0;

  /// From the operators of one call. It takes fewer once than there are views.
  static Calls of(std::int64_t operators, std::int64_t views) {
    return {operators % views, operators / views};
  }
  std::int64_t with(std::int64_t views) const { return once + for_each * views; }
};

struct Learned {
  Calls operators, recordings;
};

/// Calls that a thread has learned, of each of kMakers without and with autograd, and the one in progress.
struct Thread {
  std::array<std::array<std::optional<Learned>, 2>, kMakers.size()> learned{};
  std::optional<Learned>* slot = nullptr;  ///< of the call
  const at::RecordFunction* observed = nullptr;
  ToldOperators before{};  ///< the observed one
  const at::RecordFunction* hidden = nullptr;
};
thread_local Thread of_thread;

/// Returns the place for what is learned of the operator; nullptr: it is no maker, or may not be hidden.
std::optional<Learned>* slot_of(const at::RecordFunction& op) {
  const std::string_view name = op.name();
  std::size_t maker = 0;
  while (maker < kMakers.size() && kMakers.at(maker) != name) ++maker;
  const auto inputs = op.inputs();
  if (maker == kMakers.size() || inputs.empty() || !inputs[0].isTensor()) return nullptr;
  const at::Tensor& whole = inputs[0].toTensor();
  if (!whole.defined() || !is_plain(whole) || c10::impl::dispatch_mode_enabled() ||
      at::hasThreadLocalCallbacks())
    return nullptr;
  return &of_thread.learned.at(maker).at(at::GradMode::is_enabled() && whole.requires_grad() ? 1 : 0);
}

std::int64_t views_of(const at::RecordFunction& op) {
  const auto outputs = op.outputs();
  const bool is_list = outputs.size() == 1 && outputs[0].isTensorList();
  return static_cast<std::int64_t>(is_list ? outputs[0].toTensorList().size() : outputs.size());
}

}  // namespace

void ViewLists::begin_op(const at::RecordFunction& op) {
  Thread& thread = of_thread;
  if (thread.observed != nullptr) return;
  std::optional<Learned>* const slot = slot_of(op);
  if (slot == nullptr) return;
  thread.slot = slot;
  if (*slot) {
    thread.hidden = &op;
    at::enableRecordFunction(false);
  } else {
    thread.observed = &op;
    thread.before = HostWorkTeller::told();
  }
}

ToldOperators ViewLists::end_op(const at::RecordFunction& op) {
  constexpr std::int64_t kFewestViews = 8;  // to learn from
  Thread& thread = of_thread;
  if (thread.observed == &op) {
    thread.observed = nullptr;
    const ToldOperators now = HostWorkTeller::told();
    const std::int64_t views = views_of(op);
    if (views >= kFewestViews && now.operators > thread.before.operators)
      *thread.slot = {Calls::of(now.operators - thread.before.operators, views),
                      Calls::of(now.recordings - thread.before.recordings, views)};
  }
  if (thread.hidden != &op) return {};
  thread.hidden = nullptr;
  at::enableRecordFunction(true);
  const std::int64_t views = views_of(op);
  const Learned& learned = **thread.slot;
  return {learned.operators.with(views), learned.recordings.with(views)};
}

}  // namespace offprof
