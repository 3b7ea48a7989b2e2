#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// Contents of tensors on a virtual GPU, whose kernels compute nothing.
///
/// Contents that a program has copied to the device are known. Operators whose operands are all known are
/// computed on the CPU, so their results are known as well: masks, indices, lengths, counts. Programs read
/// these to decide shapes and control flow. Activations, weights and random numbers are not known, nor is
/// what kernels write that are launched outside of operators, such as Triton's.
///
/// If experts are assumed to be balanced, so is the choice of a router, whether its scores are known or not:
/// the choices of `topk`, `argmax` or `max` along the last dimension, taken row by row, are 0, 1, 2 and so
/// on, modulo the number of experts. Every expert gets a whole share of the choices; the first ones get those
/// that remain. With known scores, sizes that other ranks give would differ from those that a rank alone
/// takes for theirs.
///
/// Safe to call from several threads.
class KnownValues {
 public:
  /// Contents of larger tensors are not known. Integers and masks decide more often than other numbers, and a
  /// router's are large.
  static constexpr Bytes kLargestOfIntegers = 4 * kMiB, kLargestOfFloats = 64 * kKiB;
  static constexpr Bytes kLargestIntegersOfRouters = 512 * kMiB, kLargestFloatsOfRouters = 32 * kMiB;

  /// Contents of a storage on the device.
  struct Contents {
    c10::Storage on_cpu;  ///< as large; never changed
    /// of the storage on the device; nullopt: it has not been seen since the engine filled it
    std::optional<c10::weak_intrusive_ptr<c10::StorageImpl>> of{};
  };

  /// An operator in progress.
  struct Operator {
    bool knows_operands = false;        ///< it reads nothing unknown
    bool answers_reads = false;         ///< see GpuValues::answer_reads
    bool sets_results = false;          ///< its own kernels write them, not operators within it
    std::vector<at::Tensor> results{};  ///< on the CPU, in order; undefined: not known
    std::vector<std::pair<const void*, Contents>> changed{};  ///< storages that it writes, known
    at::Tensor host{}, host_contents{};  ///< it copies to `host`; undefined: unknown contents
  };

  /// `gpu` must outlive it.
  explicit KnownValues(GpuValues& gpu) : gpu_(gpu) {}

  /// An operator begins on this thread.
  Operator begin_op(const at::RecordFunction& op);
  /// It ends; `op` has its outputs.
  void end_op(const Operator& known, const at::RecordFunction& op);

  /// The engine copies a storage of the device, or a tensor in dense order, to host memory.
  void copied_out(const void* host, const void* device);
  void copied_out(const void* host, const at::Tensor& from);
  /// The engine copies what it has copied out back into a storage of the device.
  void copied_back(const void* device, const void* host);

 private:
  using Stack = std::vector<c10::IValue>;
  enum class Use : std::uint8_t { kReads, kChanges, kOverwrites, kIsResult };

  /// The way in which an operator uses contents.
  struct Kind {
    std::optional<c10::OperatorHandle> handle{};
    std::vector<Use> uses{};  ///< of its arguments
    bool is_of_torch = false, is_collective = false, is_random = false, has_out = false;
    bool finds_elements = false;  ///< and reads their number
    bool writes_results = false;  ///< by its own kernels, rather than by operators within it
  };

  const Kind& kind_of(const at::RecordFunction& op);
  bool is_too_large(const at::Tensor& tensor) const;
  void forget_after_launches();
  bool may_know(const at::Tensor& tensor, Use use) const;
  /// Returns the contents of the tensor's storage; nullptr: they are not known.
  const c10::Storage* find(const at::Tensor& tensor);
  /// Returns a tensor on the CPU with the contents of one on the device; undefined: they are not known.
  at::Tensor contents_of(const at::Tensor& tensor);
  bool is_unknown_on_host(const at::Tensor& tensor);
  void set(const void* storage, Contents contents);
  void forget(const void* storage);
  void forget_written(const Kind& kind, c10::ArrayRef<const c10::IValue> inputs);
  void forget_freed();
  /// Sets the contents of a new tensor on the device, or forgets them if they are undefined. What its storage
  /// has beside them is not read.
  void store(const at::Tensor& tensor, const at::Tensor& contents);

  void begin_copy_to_host(Operator& known, const at::Tensor& to, const at::Tensor& from);
  void end_copy_to_host(const Operator& known);
  /// Lets the GPU read a tensor's contents, if they are known and few.
  void hand_over(const at::Tensor& tensor);
  void compute(Operator& known, const Kind& kind, const at::RecordFunction& op);
  /// Returns the operands on the CPU; nullopt: some are not known.
  std::optional<Stack> operands_on_cpu(Operator& known, const Kind& kind, const at::RecordFunction& op);
  std::optional<c10::IValue> operand_on_cpu(Operator& known, const c10::IValue& value, Use use);
  at::Tensor tensor_on_cpu(Operator& known, const at::Tensor& tensor, Use use);

  std::mutex mutex_;
  GpuValues& gpu_;
  std::unordered_map<const char*, Kind> kinds_;         ///< by the address of the operator's name
  std::unordered_map<const void*, Contents> contents_;  ///< by the begin of a storage
  Bytes bytes_ = 0;                                     ///< of them
  bool gpu_may_know_ = false;  ///< the GPU has been told contents, or collectives have brought some
  Bytes bytes_after_sweep_ = 0;
  std::unordered_map<const void*, c10::Storage> copied_out_;  ///< by host address
  /// storages on the host that hold copies of unknown contents
  std::unordered_map<const void*, c10::weak_intrusive_ptr<c10::StorageImpl>> unknown_on_host_;
  std::int64_t launches_outside_ = 0;
};

}  // namespace offprof
