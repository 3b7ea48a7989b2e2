#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <cstdint>
#include <string>

#include "traces/base/units.h"

namespace offprof {

/// A tensor encoded by a transform.
struct Encoded {
  /// uint8, dense, with a separate allocation on the device of the values. These bytes stay there or are
  /// copied out.
  at::Tensor bytes;
  /// Other data that decode needs. It stays where it is, and must hold no device memory.
  c10::IValue rest{};
};

/// Encodes the values of a saved tensor into fewer bytes, and decodes them. transform_contract.h checks the
/// contract of every transform:
///
/// - decode(encode(x)) differs from x by at most error_bound(x), and is bitwise x if the transform is
///   lossless.
/// - The same values give the same bytes.
/// - For one dtype and number of elements, `bytes` has encoded_bytes() bytes, and encode and decode allocate
///   the same memory in the same order, whatever the values. So memory can be predicted.
/// - Both compute on the device of the values, and neither waits for the device.
///
/// Transforms have no state: one object serves all steps and threads. A new transform is a file here and a
/// line in transform_table.cpp.
class Transform {
 public:
  virtual ~Transform() = default;

  /// Returns the name used in rules.
  virtual std::string name() const = 0;
  virtual bool is_lossless() const = 0;
  virtual bool takes(at::ScalarType type) const = 0;
  virtual Bytes encoded_bytes(at::ScalarType type, std::int64_t elements) const = 0;

  /// `values`: dense, 1-dimensional, of a type that the transform takes, with at least one element.
  virtual Encoded encode(const at::Tensor& values) const = 0;
  /// Returns `elements` values of `type`, dense, on the device of the bytes.
  virtual at::Tensor decode(const Encoded& encoded, at::ScalarType type, std::int64_t elements) const = 0;

  /// Returns the maximum error of each element after encode and decode; infinity: no bound. If the bound is
  /// finite, NaN and infinities are preserved. For tests and reports.
  virtual at::Tensor error_bound(const at::Tensor& values) const = 0;
};

}  // namespace offprof
