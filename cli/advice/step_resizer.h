#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/model/trace.h"

namespace offprof {

/// Changes the batch or the sequence length of a program on its command line.
class StepResizer {
 public:
  enum class Dimension { kBatch, kSequence };

  /// `argument`: the argument of a training script that sets the size, as `--batch-size`, or `batch_size` in
  /// `batch_size=8`; empty for a model, whose size is that of its inputs.
  StepResizer(Dimension dimension, std::string argument);

  /// Returns the program's own size. `words`: a `run` of the program; `plain`: the trace of its step. Throws
  /// Error (input) if the script's arguments or the model's inputs do not tell it.
  std::int64_t present_size(const std::vector<std::string>& words, const Trace& plain) const;

  /// Returns the words of a run with that size. Of a model, the batch is the first dimension of its first
  /// input, and of all inputs with the same first dimension. The sequence length is the second dimension of
  /// its first input of type int64 with two dimensions, and all dimensions but the first that equal it.
  std::vector<std::string> resized(std::vector<std::string> words, const Trace& plain,
                                   std::int64_t size) const;

 private:
  Dimension dimension_;
  std::string argument_;
};

}  // namespace offprof
