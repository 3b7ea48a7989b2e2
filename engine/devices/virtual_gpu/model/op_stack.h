#pragma once

#include <string_view>
#include <vector>

#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "traces/base/check.h"
#include "traces/base/units.h"

namespace offprof {

/// The running operators, outermost first, and what each has done so far.
class OpStack {
 public:
  struct Frame {
    const OpCall* op = nullptr;
    Bytes allocated = 0;
    const void* last_block = nullptr;  ///< the block that it allocated last itself; null: none
    Bytes last_block_bytes = 0;
    bool has_launched = false;  ///< has launched a kernel itself, not only in a nested operator
  };

  bool empty() const { return frames_.empty(); }
  Frame& innermost() { return frames_.back(); }
  std::string_view innermost_name() const {
    return frames_.empty() ? std::string_view{} : frames_.back().op->name;
  }

  void begin(const OpCall& op) { frames_.push_back({.op = &op}); }
  /// Ends the innermost operator. Its allocations also count for the operator around it: `aten::empty`
  /// allocates for its caller. Those of an operator apart do not.
  void end() {
    OFFPROF_CHECK(!frames_.empty());
    const Frame ended = frames_.back();
    frames_.pop_back();
    if (!frames_.empty() && !ended.op->is_apart) innermost().allocated += ended.allocated;
  }
  void add_allocated(const void* block, Bytes bytes) {
    if (frames_.empty()) return;
    innermost().allocated += bytes;
    innermost().last_block = block;
    innermost().last_block_bytes = bytes;
  }
  /// Records that the block is a workspace: it is not an operand, so its size says nothing about the traffic.
  /// Has an effect only on the block that the innermost operator has just allocated; others are not counted
  /// for it.
  void exclude_workspace(const void* block) {
    if (block == nullptr || frames_.empty() || innermost().last_block != block) return;
    innermost().allocated -= innermost().last_block_bytes;
    innermost().last_block = nullptr;
  }

 private:
  std::vector<Frame> frames_;
};

}  // namespace offprof
