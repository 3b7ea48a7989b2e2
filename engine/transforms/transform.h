#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>

#include "traces/units.h"

namespace offprof {

/// What a transform makes of a tensor.
struct Packed {
  /// uint8, dense, with an allocation of its own on the device of the values: what waits there or is copied
  /// out.
  at::Tensor bytes;
  /// Whatever else unpack needs. It stays where it is, and must hold no device memory.
  c10::IValue rest{};
};

/// A pair of functions between a saved tensor's values and something smaller. What every transform must keep,
/// and transform_contract.h checks:
///
/// - unpack(pack(x)) is x within error_bound(x), and x itself, bit by bit, where it is lossless;
/// - the same values give the same bytes;
/// - for one dtype and number of elements, `bytes` has packed_bytes() bytes, and pack and unpack allocate the
///   same memory in the same order, whatever the values: so memory can be predicted;
/// - both compute on the device of the values, and neither waits for it.
///
/// Transforms keep no state: one object serves all steps and threads. A new one is a file here and a line in
/// transform_table.cpp.
class Transform {
 public:
  virtual ~Transform() = default;

  /// As rules name it.
  virtual std::string name() const = 0;
  virtual bool is_lossless() const = 0;
  virtual bool takes(at::ScalarType type) const = 0;
  virtual Bytes packed_bytes(at::ScalarType type, std::int64_t elements) const = 0;

  /// `values`: dense, of one dimension, of a type that it takes, at least one element.
  virtual Packed pack(const at::Tensor& values) const = 0;
  /// `elements` values of `type`, dense, on the device of the bytes.
  virtual at::Tensor unpack(const Packed& packed, at::ScalarType type, std::int64_t elements) const = 0;

  /// For each element of `values` the most that it may be off after pack and unpack; infinity: no promise.
  /// NaN and infinities come back as themselves where the bound is finite. For tests and reports.
  virtual at::Tensor error_bound(const at::Tensor& values) const = 0;
};

}  // namespace offprof
