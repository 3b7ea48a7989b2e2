#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "engine/graph_cases.h"

namespace offprof {

/// What a training step may do with autograd beside one forward and one backward. `run` does all of it; what
/// it comes to are the gradients of the graph's leaves.
struct Scenario {
  std::string name;
  std::function<void(Graph&)> run;
  /// What gives the same gradients without anything of ours; empty: `run` does.
  std::function<void(Graph&)> plain{};
  /// Backward asks for the same saved tensors twice. TRL's rules let go of them after the first time, and so
  /// refuse it.
  bool asks_again = false;
  /// Threads use a stream at once. The stream-order check, which does not know what kernels touch, then takes
  /// one thread's kernel for one that may write what another's copy reads.
  bool has_threads = false;
  /// It runs operators on threads that it starts itself, for which nobody has opened a WeightPager::Scope.
  bool starts_threads = false;

  const std::function<void(Graph&)>& plainly() const { return plain ? plain : run; }

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.name;
  }
};

/// Saves four tensors that are sparse or quantised, and others.
void sparse_and_quantised_tensors(Graph& g);

/// Kinds of tensors that are saved.
std::vector<Scenario> saved_tensor_scenarios();

/// What a step may do with several losses, `loss` being one of a graph: forwards and backwards in whatever
/// order.
struct LossScenario {
  using Loss = std::function<Tensor(Graph&, double scale)>;
  const char* name = nullptr;
  void (*run)(Graph&, const Loss& loss) = nullptr;
  bool asks_again = false;
  bool starts_threads = false;
};
std::span<const LossScenario> loss_scenarios();

/// All of these, those of module_scenarios.h, every kind of graph with a backward of its own, and all else
/// that is worth its name.
std::vector<Scenario> all_scenarios();

}  // namespace offprof
