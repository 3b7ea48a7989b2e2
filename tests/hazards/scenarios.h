#pragma once

#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "tests/support/graph_cases.h"

namespace offprof {

/// Use of autograd in a training step, beyond one forward and one backward. `run` does all of it; its result
/// is the gradients of the graph's leaves.
struct Scenario {
  std::string name;
  std::function<void(Graph&)> run;
  /// Computes the same gradients without any code of offprof; empty: `run` does.
  std::function<void(Graph&)> plain{};
  /// True if backward unpacks the same saved tensors twice. TRL's rules drop them after the first time, so
  /// they refuse the second.
  bool asks_again = false;
  /// True if several threads use a stream at once. The stream race checker does not know what kernels touch.
  /// It then takes one thread's kernel for one that may write the source of another thread's copy.
  bool has_threads = false;
  /// True if it runs operators on threads that it starts itself, for which nobody has opened a
  /// ParameterOffloader::Scope.
  bool starts_threads = false;
  /// False if no tensor that it unpacks can be recomputed: only a forward runs, operators run on another
  /// thread, or the pass runs in layer slices.
  bool can_recompute = true;

  const std::function<void(Graph&)>& plainly() const { return plain ? plain : run; }

  friend std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
    return out << scenario.name;
  }
};

/// Saves four sparse or quantised tensors, and others.
void sparse_and_quantised_tensors(Graph& g);

/// Returns one scenario for each kind of saved tensor.
std::vector<Scenario> saved_tensor_scenarios();

/// Use of several losses in a step. `loss` computes one from a graph; forwards and backwards come in any
/// order.
struct LossScenario {
  using Loss = std::function<Tensor(Graph&, double scale)>;
  const char* name = nullptr;
  void (*run)(Graph&, const Loss& loss) = nullptr;
  bool asks_again = false;
  bool starts_threads = false;
  bool can_recompute = true;
};
std::span<const LossScenario> loss_scenarios();

/// Returns all scenarios: those above, those of module_scenarios.h, one for each kind of graph with a
/// backward of its own, and the others of this file.
std::vector<Scenario> all_scenarios();

}  // namespace offprof
