#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/model/step_program.h"

namespace offprof {

/// A step program like the recording of a transformer, of any size. It is a chain of blocks in which each
/// operator saves its input and a parameter. Some operators share an input. Backward unpacks all saved
/// tensors in reverse order.
class TransformerProgram {
 public:
  static StepProgram make(int blocks) { return TransformerProgram(blocks).program_; }

 private:
  /// An operator of a block. `output` is the size of its output in units of the residual stream's bytes.
  struct Op {
    const char* name;
    Bytes output;
    Nanoseconds duration;
    bool has_parameter;
  };
  static constexpr Bytes kStreamBytes = 2 * kMiB;
  static constexpr Bytes kParameterBytes = 1 * kMiB;
  static constexpr Op kOps[] = {
      {"aten::layer_norm", 1, 40'000, true}, {"aten::linear", 3, 900'000, true},
      {"aten::bmm", 4, 300'000, false},      {"aten::softmax", 4, 250'000, false},
      {"aten::matmul", 1, 300'000, false},   {"aten::linear", 1, 300'000, true},
      {"aten::add", 1, 30'000, false},       {"aten::layer_norm", 1, 40'000, true},
      {"aten::linear", 4, 1'200'000, true},  {"aten::gelu", 4, 150'000, false},
      {"aten::linear", 1, 1'200'000, true},  {"aten::add", 1, 30'000, false},
  };

  explicit TransformerProgram(int blocks) {
    program_.resident_bytes = blocks * 6 * kParameterBytes;
    add(EventKind::kPhase, name("forward"));
    stream_ = storage(kStreamBytes, StorageRole::kInput);
    for (int block = 0; block < blocks; ++block)
      for (const Op& op : kOps) forward(op);
    add(EventKind::kPhase, name("backward"));
    gradient_ = allocate(kStreamBytes);
    while (!nodes_.empty()) backward();
    add(EventKind::kFree, gradient_);
    program_.events.push_back({EventKind::kBackwardEnd, 0, 0});
    add(EventKind::kPhase, name("optimizer"));
  }

  /// The contents of an autograd node.
  struct Node {
    std::int32_t name;
    Nanoseconds duration;
    std::vector<std::int32_t> saved;
  };

  void forward(const Op& op) {
    Node node{name(std::string(op.name) + "Backward0"), 2 * op.duration, {}};
    add(EventKind::kOpBegin, name(op.name));
    const std::int32_t output = allocate(op.output * kStreamBytes);
    node.saved.push_back(save(stream_, Movability::kMovable, name(op.name)));
    if (op.has_parameter)
      node.saved.push_back(
          save(storage(kParameterBytes, StorageRole::kParameter), Movability::kParameter, name(op.name)));
    add(EventKind::kOpEnd, name(op.name), op.duration);
    if (program_.storages[stream_].role == StorageRole::kActivation) add(EventKind::kFree, stream_);
    stream_ = output;
    nodes_.push_back(std::move(node));
  }

  void backward() {
    const Node& node = nodes_.back();
    add(EventKind::kOpBegin, node.name);
    for (const std::int32_t saved : node.saved) add(EventKind::kUnpack, saved);
    const std::int32_t gradient = allocate(kStreamBytes);
    program_.events.push_back({EventKind::kNodeEnd, 0, node.duration});
    for (const std::int32_t saved : node.saved) add(EventKind::kRelease, saved);
    add(EventKind::kOpEnd, node.name);
    add(EventKind::kFree, gradient_);
    gradient_ = gradient;
    nodes_.pop_back();
  }

  std::int32_t save(std::int32_t of_storage, Movability movability, std::int32_t op) {
    SavedTensor saved;
    saved.storage = of_storage;
    saved.movability =
        program_.storages[of_storage].role == StorageRole::kInput ? Movability::kInput : movability;
    saved.op = op;
    saved.bytes = program_.storages[of_storage].bytes;
    saved.layout = TensorLayout{"float32", {saved.bytes / 4096, 1024}, {1024, 1}};
    program_.saved.push_back(saved);
    const auto id = static_cast<std::int32_t>(program_.saved.size() - 1);
    add(EventKind::kPack, id);
    return id;
  }

  std::int32_t storage(Bytes bytes, StorageRole role) {
    program_.storages.push_back({bytes, role});
    return static_cast<std::int32_t>(program_.storages.size() - 1);
  }
  std::int32_t allocate(Bytes bytes) {
    const std::int32_t id = storage(bytes, StorageRole::kActivation);
    add(EventKind::kAlloc, id);
    return id;
  }
  std::int32_t name(const std::string& text) {
    for (std::size_t i = 0; i < program_.names.size(); ++i)
      if (program_.names[i] == text) return static_cast<std::int32_t>(i);
    program_.names.push_back(text);
    return static_cast<std::int32_t>(program_.names.size() - 1);
  }
  void add(EventKind kind, std::int32_t id, Nanoseconds compute = 1000) {
    program_.events.push_back({kind, id, compute});
  }

  StepProgram program_;
  std::int32_t stream_ = 0;
  std::int32_t gradient_ = 0;
  std::vector<Node> nodes_;
};

}  // namespace offprof
