#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/devices/device.h"
#include "engine/recompute/random_draws.h"
#include "engine/recompute/recompute.h"

namespace offprof {

/// Returns true if the two tensors had the same content: the same version counter with the same value.
bool is_same_content(const WatchedContent& a, const WatchedContent& b);
WatchedContent content_of(const at::Tensor& value);

struct NotedCall;

/// A result of an operator that fills a whole storage.
struct NotedResult {
  const NotedCall* call = nullptr;
  std::size_t output = 0;
  WatchedContent content{};
  StorageView view{};
  /// Place among the results that the operator itself saved for its backward; -1: it did not save this one.
  std::int32_t own_save = -1;
};

/// One argument of a recorded operator call.
struct NotedArgument {
  c10::IValue value{};          ///< not a tensor, or a tensor older than the step
  AllocationId allocation = 0;  ///< of a tensor
  bool is_resident = false;     ///< it is older than the step and outlives it
  WatchedContent content{};
  StorageView view{};
  const NotedResult* made_by = nullptr;  ///< the call that produced the content, if known
  /// it must be created for the operator, even if it is held elsewhere
  bool is_own = false;
};

/// An operator call that could run again with the same result, with its recorded arguments.
struct NotedCall {
  c10::OperatorHandle op;
  std::vector<NotedArgument> arguments;
  bool changes_first = false;         ///< it returns its first argument, changed
  std::optional<std::size_t> draw{};  ///< index in RandomDraws, if it draws
};

/// Observes the operators that a step runs until its backward. For those that can run again
/// (recomputable_ops.h, random_draws.h) it records their arguments and where they left their results.
/// Contents that other operators return or change have no producer. Nothing is recomputed from memory that
/// nobody has written to: a proof that it is correct would be chance.
///
/// Listens on the thread that created it, from its construction until `stop`. One at a time on a thread; any
/// thread may destroy it, once no operator runs on its own.
class OperatorNotes {
 public:
  /// `residents` are those of the step. Both must outlive the object.
  OperatorNotes(Device& device, const Residents& residents);
  ~OperatorNotes();
  OperatorNotes(const OperatorNotes&) = delete;
  OperatorNotes& operator=(const OperatorNotes&) = delete;

  /// Adds a tensor that has been saved. Call it for each, in the order in which they are saved.
  void add_saved(const at::Tensor& value);
  /// Stops listening. Call it when backward begins.
  void stop() { is_listening_ = false; }
  /// Returns true if there are notes of the calling thread, so that it cannot begin others.
  static bool is_taken();

  /// Returns the result that left that content in the allocation; nullptr: it is not known, or could not run
  /// again.
  const NotedResult* maker_of(AllocationId allocation, const WatchedContent& content) const;
  /// Returns what `value`, which is about to be saved, will be for each operator that runs now if it is the
  /// result with that number. Their calls are valid until they end.
  std::vector<NotedResult> results_to_come(const at::Tensor& value, std::size_t output);
  const RandomDraws& draws() const { return draws_; }
  /// Returns the first allocation id of the step; older storages have smaller ids.
  AllocationId first_allocation() const { return first_allocation_; }

 private:
  struct Running;
  /// The notes that a thread's callback of LibTorch writes to. Only the thread itself can remove the
  /// callback: if another one destroys the notes, it stays, idle, for the thread's next notes.
  struct Listener {
    OperatorNotes* notes = nullptr;
    std::optional<at::CallbackHandle> callback{};
  };

  static const std::shared_ptr<Listener>& listener_of_thread();
  static std::unique_ptr<at::ObserverContext> op_begins(const at::RecordFunction& op);
  static void op_ends(const at::RecordFunction& op, at::ObserverContext* context);
  std::unique_ptr<Running> begin(const at::RecordFunction& op);
  void note_arguments(c10::ArrayRef<c10::IValue> inputs, std::optional<NotedCall>& call) const;
  std::optional<NotedArgument> noted(const c10::IValue& value) const;
  std::optional<NotedArgument> noted_tensor(const at::Tensor& value) const;
  void end(Running& running, c10::ArrayRef<c10::IValue> outputs);
  void add_result(const Running& running, std::size_t output, const at::Tensor& result);
  const NotedCall* call_for(const NotedCall& call, std::size_t output, c10::Device device);
  void give_memory(NotedArgument& argument, c10::Device device);

  Device& device_;
  const Residents& residents_;
  AllocationId first_allocation_;
  std::shared_ptr<Listener> listener_;
  bool is_listening_ = true;
  SavedId packed_ = 0;
  RandomDraws draws_;
  std::deque<NotedCall> calls_;      ///< calls that left a result; addresses stay valid
  std::deque<NotedResult> results_;  ///< addresses stay valid
  std::map<AllocationId, const NotedResult*> latest_;
  std::vector<Running*> running_;  ///< operators with a call, outermost first
};

}  // namespace offprof
