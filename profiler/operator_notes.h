#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "engine/device.h"
#include "engine/offload_step.h"
#include "engine/random_draws.h"
#include "engine/remake.h"

namespace offprof {

/// Whether two tensors had the same content: the same counter, which said the same.
bool is_same_content(const WatchedContent& a, const WatchedContent& b);
WatchedContent content_of(const at::Tensor& value);

struct NotedCall;

/// What an operator left in a storage: all of it, and nothing else.
struct NotedResult {
  const NotedCall* call = nullptr;
  std::size_t output = 0;
  WatchedContent content{};
  StorageView view{};
};

/// What an operator was given in one place.
struct NotedArgument {
  c10::IValue value{};          ///< no tensor, or one that is older than the step
  AllocationId allocation = 0;  ///< of a tensor
  bool is_resident = false;     ///< it is older than the step, and stays as long
  WatchedContent content{};
  StorageView view{};
  const NotedResult* made_by = nullptr;  ///< where it is known what gave the storage that content
  bool is_own = false;                   ///< it must be made for the operator, whatever is held
};

/// An operator that has run, and could once more for the same result: what it takes is noted.
struct NotedCall {
  c10::OperatorHandle op;
  std::vector<NotedArgument> arguments;
  bool changes_first = false;         ///< it gives its first argument, changed
  std::optional<std::size_t> draw{};  ///< of RandomDraws, where it draws
};

/// Hears of the operators that a step runs until its backward, and notes of those that can run again
/// (remakeable_ops.h, random_draws.h) what they were given, and what of it they left where. What another
/// operator gives or changes nobody has made. Nothing is made of what lies in memory that nobody has written
/// to: a proof that it comes out right would be chance.
///
/// Listens on the thread that made it from its construction until `stop`; one at a time in the process.
class OperatorNotes {
 public:
  /// `residents`: of the step. Both must outlive it.
  OperatorNotes(Device& device, const Residents& residents);
  ~OperatorNotes();
  OperatorNotes(const OperatorNotes&) = delete;
  OperatorNotes& operator=(const OperatorNotes&) = delete;

  /// So many tensors have been saved.
  void set_packed(SavedId packed) { packed_ = packed; }
  /// Backward begins.
  void stop() { is_listening_ = false; }

  /// What left that content in the allocation; nullptr: it is not known, or could not run again.
  const NotedResult* maker_of(AllocationId allocation, const WatchedContent& content) const;
  const RandomDraws& draws() const { return draws_; }
  /// Storages with a smaller id are older than the step.
  AllocationId first_allocation() const { return first_allocation_; }

 private:
  struct Running;

  static std::unique_ptr<at::ObserverContext> op_begins(const at::RecordFunction& op);
  static void op_ends(const at::RecordFunction& op, at::ObserverContext* context);
  std::unique_ptr<Running> begin(const at::RecordFunction& op);
  void note_arguments(c10::ArrayRef<c10::IValue> inputs, std::optional<NotedCall>& call) const;
  std::optional<NotedArgument> noted(const c10::IValue& value) const;
  std::optional<NotedArgument> noted_tensor(const at::Tensor& value) const;
  void end(Running& running, c10::ArrayRef<c10::IValue> outputs);
  void add_result(const Running& running, std::size_t output, const at::Tensor& result);
  void give_memory(NotedArgument& argument, c10::Device device);

  Device& device_;
  const Residents& residents_;
  AllocationId first_allocation_;
  at::CallbackHandle callback_;
  bool is_listening_ = true;
  SavedId packed_ = 0;
  RandomDraws draws_;
  std::deque<NotedCall> calls_;      ///< that left something; addresses stay
  std::deque<NotedResult> results_;  ///< likewise
  std::map<AllocationId, const NotedResult*> latest_;
};

}  // namespace offprof
