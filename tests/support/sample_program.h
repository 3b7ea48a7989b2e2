#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Builds a step program event by event; storages, tensors and names are referred to by index. For tests.
class ProgramSketch {
 public:
  explicit ProgramSketch(Bytes resident_bytes = 0) { program_.resident_bytes = resident_bytes; }

  /// Adds a storage that is older than the step; the resident bytes include it.
  std::int32_t resident(Bytes bytes, StorageRole role = StorageRole::kResident) {
    program_.storages.push_back({bytes, role});
    return last_storage();
  }
  std::int32_t alloc(Bytes bytes, StorageRole role = StorageRole::kActivation) {
    program_.storages.push_back({bytes, role});
    add(EventKind::kAlloc, last_storage());
    return last_storage();
  }
  void free(std::int32_t storage) { add(EventKind::kFree, storage); }
  void request_free(std::int32_t storage) { add(EventKind::kFreeRequested, storage); }

  /// Saves the whole storage.
  SavedId save(std::int32_t storage, std::uint32_t version = 0,
               Movability movability = Movability::kMovable) {
    SavedTensor saved;
    saved.storage = storage;
    saved.version = version;
    saved.movability = movability;
    saved.op = name_index("op");
    saved.bytes = storage < 0 ? 0 : program_.storages[static_cast<std::size_t>(storage)].bytes;
    program_.saved.push_back(saved);
    const auto tensor = static_cast<SavedId>(program_.saved.size() - 1);
    add(EventKind::kPack, tensor);
    return tensor;
  }
  /// Saves a view of `bytes` bytes.
  SavedId save_part(std::int32_t storage, Bytes bytes) {
    const SavedId tensor = save(storage);
    program_.saved.back().bytes = bytes;
    return tensor;
  }
  void unpack(SavedId tensor) { add(EventKind::kUnpack, tensor); }
  void node_end() { add(EventKind::kNodeEnd, 0); }
  void release(SavedId tensor) { add(EventKind::kRelease, tensor); }
  /// Marks the tensor that the unpack returns as in use after its node, until free_unpacked.
  void escapes(SavedId tensor) { program_.saved[static_cast<std::size_t>(tensor)].escapes = true; }
  void free_unpacked(SavedId tensor) { add(EventKind::kFreeUnpacked, tensor); }
  void backward_end() { add(EventKind::kBackwardEnd, 0); }
  /// Parameter offload: begins a copy into the storage, waits for it, or copies the storage out and waits for
  /// that.
  void fetch(std::int32_t storage) { add(EventKind::kFetch, storage); }
  void fetched(std::int32_t storage) { add(EventKind::kFetched, storage); }
  void save_parameters(std::int32_t storage) { add(EventKind::kSave, storage); }
  /// Adds a node that uses one tensor.
  void node(SavedId tensor) {
    unpack(tensor);
    node_end();
    release(tensor);
  }

  void phase(const std::string& name) { add(EventKind::kPhase, name_index(name)); }
  void op_begin(const std::string& name) { add(EventKind::kOpBegin, name_index(name)); }
  void op_end(const std::string& name) { add(EventKind::kOpEnd, name_index(name)); }

  /// Adds time that passes before the next event.
  void compute(Nanoseconds duration) { compute_ns_ += duration; }

  const StepProgram& program() const { return program_; }

 private:
  std::int32_t last_storage() const { return static_cast<std::int32_t>(program_.storages.size() - 1); }
  void add(EventKind kind, std::int32_t id) {
    program_.events.push_back({kind, id, std::exchange(compute_ns_, 0)});
  }
  std::int32_t name_index(const std::string& name) {
    for (std::size_t i = 0; i < program_.names.size(); ++i)
      if (program_.names[i] == name) return static_cast<std::int32_t>(i);
    program_.names.push_back(name);
    return static_cast<std::int32_t>(program_.names.size() - 1);
  }

  StepProgram program_;
  Nanoseconds compute_ns_ = 0;
};

/// One layer of a chain: what its forward saves, and how its backward uses it.
struct LayerSketch {
  Bytes bytes = 100;        ///< size of its output
  Bytes scratch_bytes = 0;  ///< live within its forward
  bool saves_output = true;
  bool saves_input = false;
  bool changes_output = false;       ///< in place, and saves the result too: a new version
  bool output_outlives_use = false;  ///< the step program holds the output until the end of forward
  bool output_escapes = false;       ///< its saved output stays in use until the next node has run
  bool output_stays = false;         ///< its saved output may not move
  Nanoseconds forward_ns = 10;
  Nanoseconds backward_ns = 20;
};

/// Training step of a chain of layers. Each layer allocates its output, then its input is freed. Backward
/// visits the layers in reverse, with a gradient of the output's size. Then the optimizer runs. For tests.
class ChainSketch {
 public:
  static constexpr Bytes kResidentBytes = 1000;

  static StepProgram program(const std::vector<LayerSketch>& layers) {
    ChainSketch chain;
    chain.forward(layers);
    chain.backward(layers);
    chain.sketch_.phase("optimizer");
    chain.sketch_.compute(30);
    chain.sketch_.phase("end");
    return chain.sketch_.program();
  }
  static StepProgram program(int layers, Bytes bytes) {
    return program(std::vector<LayerSketch>(static_cast<std::size_t>(layers), LayerSketch{.bytes = bytes}));
  }

 private:
  struct Layer {
    std::int32_t output = -1;
    std::uint32_t version = 0;
    std::vector<std::int32_t> saved;
  };

  void forward(const std::vector<LayerSketch>& layers) {
    sketch_.phase("forward");
    for (std::size_t i = 0; i < layers.size(); ++i) {
      forward(layers[i]);
      if (i > 0 && !layers[i - 1].output_outlives_use) sketch_.free(layers_[i - 1].output);
    }
    for (std::size_t i = 0; i < layers.size(); ++i)
      if (layers[i].output_outlives_use || i + 1 == layers.size()) sketch_.free(layers_[i].output);
  }

  void forward(const LayerSketch& layer) {
    sketch_.op_begin("layer");
    Layer made;
    made.output = sketch_.alloc(layer.bytes);
    if (layer.scratch_bytes > 0) sketch_.free(sketch_.alloc(layer.scratch_bytes));
    sketch_.compute(layer.forward_ns);
    const Movability movability = layer.output_stays ? Movability::kBuffer : Movability::kMovable;
    if (layer.saves_input && !layers_.empty())
      made.saved.push_back(sketch_.save(layers_.back().output, layers_.back().version));
    if (layer.saves_output) {
      made.saved.push_back(sketch_.save(made.output, 0, movability));
      if (layer.output_escapes) sketch_.escapes(made.saved.back());
    }
    if (layer.changes_output) made.saved.push_back(sketch_.save(made.output, ++made.version, movability));
    sketch_.op_end("layer");
    layers_.push_back(made);
  }

  void backward(const std::vector<LayerSketch>& layers) {
    sketch_.phase("backward");
    std::int32_t gradient = -1;
    for (std::size_t i = layers.size(); i-- > 0;) {
      sketch_.op_begin("LayerBackward0");
      const std::int32_t made = sketch_.alloc(layers[i].bytes);
      for (const std::int32_t tensor : layers_[i].saved) sketch_.unpack(tensor);
      sketch_.compute(layers[i].backward_ns);
      sketch_.node_end();
      sketch_.op_end("LayerBackward0");
      for (const std::int32_t tensor : layers_[i].saved) sketch_.release(tensor);
      if (gradient >= 0) sketch_.free(gradient);
      gradient = made;
      let_go_of_escaped();
      for (const std::int32_t tensor : layers_[i].saved)
        if (sketch_.program().saved[static_cast<std::size_t>(tensor)].escapes) escaped_.push_back(tensor);
    }
    let_go_of_escaped();
    if (gradient >= 0) sketch_.free(gradient);
    sketch_.backward_end();
  }

  void let_go_of_escaped() {
    for (const std::int32_t tensor : std::exchange(escaped_, {})) sketch_.free_unpacked(tensor);
  }

  ProgramSketch sketch_{kResidentBytes};
  std::vector<Layer> layers_;
  std::vector<std::int32_t> escaped_;
};

}  // namespace offprof
