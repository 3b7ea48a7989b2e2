#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "traces/model/policy.h"

namespace offprof {

// Policies of the offload scheduler that each set one limit. For tests.

inline Policy with_threshold(Bytes bytes) {
  Policy policy;
  policy.threshold_bytes = bytes;
  return policy;
}

inline Policy with_stash(std::int64_t count) {
  Policy policy;
  policy.stash_count = count;
  return policy;
}

inline Policy with_stash_bytes(Bytes bytes) {
  Policy policy;
  policy.stash_bytes = bytes;
  return policy;
}

inline Policy with_prefetch(Bytes bytes) {
  Policy policy;
  policy.prefetch_bytes = bytes;
  return policy;
}

inline Policy with_host_memory(Bytes bytes) {
  Policy policy;
  policy.host_memory_bytes = bytes;
  return policy;
}

inline Policy with_plan(std::vector<SavedId> tensors) {
  Policy policy;
  policy.tensors = std::move(tensors);
  return policy;
}

}  // namespace offprof
