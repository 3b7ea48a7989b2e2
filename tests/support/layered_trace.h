#pragma once

#include <string>
#include <vector>

#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/model/trace.h"

namespace offprof {

/// Saved tensor of layered_trace.
struct LayerSave {
  std::string module;
  Bytes bytes = 0;
  std::string op = "aten::mm";
  std::string dtype = "float32";
};

/// Returns the trace of a step that saves these tensors one after another, frees them in forward, and unpacks
/// them in reverse. For tests.
inline Trace layered_trace(const std::vector<LayerSave>& saves) {
  ProgramSketch sketch(1000);
  std::vector<SavedId> tensors;
  sketch.phase("forward");
  for (const LayerSave& save : saves) {
    const std::int32_t storage = sketch.alloc(save.bytes);
    tensors.push_back(sketch.save(storage));
    sketch.free(storage);
  }
  sketch.phase("backward");
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) sketch.node(*tensor);
  sketch.backward_end();

  Trace trace = sample_trace();
  trace.program = sketch.program();
  for (std::size_t i = 0; i < saves.size(); ++i) {
    SavedTensor& saved = trace.program.saved[i];
    trace.program.names.push_back(saves[i].op);
    saved.op = static_cast<std::int32_t>(trace.program.names.size() - 1);
    saved.layout = TensorLayout{saves[i].dtype, {saves[i].bytes}, {1}};
    if (saves[i].module.empty()) continue;
    trace.program.names.push_back(saves[i].module);
    saved.module = static_cast<std::int32_t>(trace.program.names.size() - 1);
  }
  return trace;
}

}  // namespace offprof
