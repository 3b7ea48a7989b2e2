#pragma once

#include <rapidcheck.h>

#include <ostream>
#include <vector>

#include "tests/support/sample_program.h"

namespace offprof {

/// Prints a layer for rapidcheck.
inline std::ostream& operator<<(std::ostream& out, const LayerSketch& layer) {
  out << "{" << layer.bytes << " B, scratch " << layer.scratch_bytes << " B";
  if (layer.saves_output) out << ", saves output";
  if (layer.saves_input) out << ", saves input";
  if (layer.changes_output) out << ", changes output";
  if (layer.output_outlives_use) out << ", output outlives its use";
  if (layer.output_escapes) out << ", output escapes";
  if (layer.output_stays) out << ", output stays";
  return out << ", " << layer.forward_ns << " ns, " << layer.backward_ns << " ns}";
}

/// Generates the layers of a chain whose storages have fewer than `most_bytes` bytes. For property tests.
inline rc::Gen<std::vector<LayerSketch>> random_layers(Bytes most_bytes) {
  constexpr Nanoseconds kMostTime = 200;
  const auto yes_or_no = rc::gen::arbitrary<bool>();
  const auto seldom = rc::gen::weightedElement<bool>({{3, false}, {1, true}});
  return rc::gen::container<std::vector<LayerSketch>>(rc::gen::build<LayerSketch>(
      rc::gen::set(&LayerSketch::bytes, rc::gen::inRange<Bytes>(1, most_bytes)),
      rc::gen::set(&LayerSketch::scratch_bytes, rc::gen::inRange<Bytes>(0, most_bytes)),
      rc::gen::set(&LayerSketch::saves_output, yes_or_no), rc::gen::set(&LayerSketch::saves_input, yes_or_no),
      rc::gen::set(&LayerSketch::changes_output, seldom),
      rc::gen::set(&LayerSketch::output_outlives_use, seldom),
      rc::gen::set(&LayerSketch::output_escapes, seldom), rc::gen::set(&LayerSketch::output_stays, seldom),
      rc::gen::set(&LayerSketch::forward_ns, rc::gen::inRange<Nanoseconds>(0, kMostTime)),
      rc::gen::set(&LayerSketch::backward_ns, rc::gen::inRange<Nanoseconds>(0, kMostTime))));
}

}  // namespace offprof
