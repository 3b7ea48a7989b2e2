#pragma once

#include <vector>

#include "tests/support/sample_program.h"
#include "traces/model/step_program.h"
#include "traces/model/tensor_layout.h"

namespace offprof {

inline constexpr Bytes kSmall = 96, kLarge = 192, kLargest = 384;

/// Returns a step program with four saved tensors, of which the second and the third are not dense. The last
/// one is in the stash when backward begins. Each tensor has its own node. If tensors come back dense, each
/// node temporarily takes `more_bytes`. `escapes`: the first tensor stays in use after its node.
inline StepProgram program_of_layouts(Bytes more_bytes, bool escapes = false) {
  const TensorLayout small{"float64", {4, 3}, {6, 1}}, large{"float64", {4, 6}, {12, 1}};
  ProgramSketch sketch;
  std::vector<SavedId> saved;
  for (const Bytes bytes : {kLargest, kLarge, kSmall, kLargest}) {
    const std::int32_t storage = sketch.alloc(2 * bytes);
    saved.push_back(sketch.save_part(storage, bytes));
    sketch.free(storage);
  }
  for (auto tensor = saved.rbegin(); tensor != saved.rend(); ++tensor) {
    if (more_bytes > 0) sketch.free(sketch.alloc(more_bytes));
    sketch.node(*tensor);
  }
  sketch.backward_end();
  StepProgram made = sketch.program();
  made.saved[1].layout = large;
  made.saved[2].layout = small;
  made.saved[0].escapes = escapes;
  return made;
}

}  // namespace offprof
