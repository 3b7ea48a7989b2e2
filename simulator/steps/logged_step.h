#pragma once

#include <cstdint>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "traces/base/units.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"

namespace offprof {

/// A call of the caching allocator, or a block that it keeps for a step from the one before.
struct AllocatorCall {
  enum class Kind : std::uint8_t {
    kAllocate,     ///< `bytes` for `storage`; without bytes it has no block
    kRequestFree,  ///< of `storage`; its block stays in use until kFree
    kFree,         ///< of `storage`, which may have no block
    kStage,        ///< allocates `bytes` for a copy out, and frees them
    kCarry,        ///< `storage` has the block that was that of `older_storage` in the step before
  };

  Bytes bytes = 0;
  std::int32_t storage = -1;
  std::int32_t older_storage = -1;
  std::uint32_t event = 0;  ///< index in Step::events()
  Kind kind = Kind::kAllocate;
};

/// A replayed step, and what it asks of the caching allocator.
struct LoggedStep {
  Prediction prediction;
  std::vector<AllocatorCall> calls;  ///< in order
};

/// Replays a step that begins with `carried` (see replay_after).
LoggedStep log_step(const CarriedMemory& carried, const Step& step, const Policy& policy, const Link& link);

}  // namespace offprof
