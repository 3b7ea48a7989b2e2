#pragma once

#include <string>
#include <vector>

#include "traces/model/trace.h"

namespace offprof {

/// Rank of a job, and its trace with nothing done.
struct RecordedRank {
  int rank = 0;
  Trace trace;
};

/// Returns the rank of a job that takes the most device memory with nothing done, of the representative ones
/// (`--rank auto`); of equal ones the first. Runs this executable once. `words` are those of a `run` of the
/// training script on a virtual GPU, with `--world-size`. Ranks leave what they say in the folder `said`: see
/// kSaidVariable. Throws Error (input) with the reason if a rank cannot be recorded, and EndedBySignal if it
/// was interrupted.
RecordedRank find_demanding_rank(const std::vector<std::string>& words, const std::string& said);

}  // namespace offprof
