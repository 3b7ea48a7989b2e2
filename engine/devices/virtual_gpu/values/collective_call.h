#pragma once

#include <cstdint>

#include "engine/devices/virtual_gpu/collectives/collective_cost.h"
#include "traces/base/units.h"

namespace offprof {

/// Number type of a collective. Values of the types until kFloat64 are carried.
enum class NumberType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat32,
  kFloat64,
  kFloat16,
  kBfloat16,
  kFloat8E4m3,
  kFloat8E5m2,
  kOther
};
/// Reduction of a collective. kOther are those that PyTorch defines with a factor: their values are not
/// carried.
enum class Reduction : std::uint8_t { kSum, kMax, kMin, kAverage, kProduct, kOther };

/// One operation between ranks.
struct CollectiveCall {
  Collective collective = Collective::kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  Bytes bytes = 0;  ///< the message: see CollectiveCost::time_of
  NumberType type = NumberType::kOther;
  Reduction reduction = Reduction::kOther;
  bool is_root = false;  ///< of broadcast and reduce
  int root = 0;  ///< rank in the communicator: of broadcast and reduce the root, of send and receive the peer
  bool is_of_objects = false;  ///< and another rank's may have another size: see VirtualGpu::note_objects
};

}  // namespace offprof
