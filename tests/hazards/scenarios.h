#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "engine/graph_cases.h"

namespace offprof {

/// What a training step may do with autograd beside one forward and one backward. `run` does all of it; what
/// it comes to are the gradients of the graph's leaves.
struct Scenario {
  std::string name;
  std::function<void(Graph&)> run;
  /// Backward asks for the same saved tensors twice. TRL's rules let go of them after the first time, and so
  /// refuse it.
  bool asks_again = false;
  /// Threads use a stream at once. The stream-order check, which does not know what kernels touch, then takes
  /// one thread's kernel for one that may write what another's copy reads.
  bool has_threads = false;

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.name;
  }
};

/// Saves four tensors that are sparse or quantised, and others.
void sparse_and_quantised_tensors(Graph& g);

/// Kinds of tensors that are saved.
std::vector<Scenario> saved_tensor_scenarios();

/// Those, every kind of graph with a backward of its own, and all else that is worth its name.
std::vector<Scenario> all_scenarios();

}  // namespace offprof
