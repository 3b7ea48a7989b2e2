#include "tests/properties/operations.h"

#include <vector>

namespace offprof {

std::span<const Operation> operations() {
  static const std::vector<Operation> all = [] {
    std::vector<Operation> operations(tensor_operations().begin(), tensor_operations().end());
    operations.insert(operations.end(), graph_operations().begin(), graph_operations().end());
    return operations;
  }();
  return all;
}

}  // namespace offprof
