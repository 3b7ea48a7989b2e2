#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/devices/virtual_gpu/model/op_work.h"

namespace offprof {

/// Values that the host reads of the routing of a mixture of experts, if experts get equally many tokens.
///
/// A layer routes by `aten::topk` of the scores, [tokens, experts]. Models of transformers then ask which
/// experts have tokens (`aten::nonzero` of a mask with an element for each expert), and for each of them
/// which tokens it has (`aten::nonzero` of its part of the mask, with an element for each token and choice).
/// The number of the elements found decides the shapes of the expert's tensors. It is a whole share of the
/// choices; the first experts get those that remain.
class BalancedExperts {
 public:
  /// Contents of device memory.
  struct Contents {
    const void* address = nullptr;
    std::vector<std::int64_t> numbers;
  };

  /// An operator begins, within those that have begun and not ended.
  void begin_op(const OpCall& op);
  /// The innermost operator ends. Returns the contents of its result, if the host may read them.
  std::optional<Contents> end_op();
  /// The allocator of PyTorch has handed out a block.
  void block_allocated(const void* block);
  /// The host reads a number from the device. Returns it; nullopt: it is not known.
  std::optional<std::int64_t> read_number();

 private:
  void begin_nonzero(std::int64_t elements);

  std::int64_t tokens_ = 0, experts_ = 0;  ///< of the last routing; 0: there was none
  std::int64_t next_expert_ = 0;           ///< whose tokens are asked for next
  int depth_ = 0;                          ///< of operators within the `aten::nonzero` in progress, and it
  std::optional<std::int64_t> count_;      ///< of the elements that it finds
  bool finds_experts_ = false;
  bool awaits_result_ = false;  ///< the next block is that of its result
  const void* result_ = nullptr;
};

}  // namespace offprof
