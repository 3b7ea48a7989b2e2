#pragma once

#include <rapidcheck.h>

#include <utility>

#include "simulator/random_program.h"
#include "simulator/sample_program.h"
#include "traces/link.h"

namespace offprof {

/// What the program computes becomes kernels that the host launches ahead of the device. For tests.
inline Program beside_host(Program program) {
  for (const Event& event : program.events) {
    const Nanoseconds launch = event.compute_ns / 3;
    program.work.push_back(
        {launch, event.compute_ns, launch + event.compute_ns, Work::kNoWait, event.compute_ns});
  }
  program.work.push_back({5, 20, 25, Work::kNoWait, 20});
  return program;
}

/// A chain of some layers, on a device that computes on the host or beside it.
inline Program random_chain(int most_layers, Bytes most_bytes) {
  Program program = ChainSketch::program(*rc::gen::resize(most_layers, random_layers(most_bytes)));
  return *rc::gen::arbitrary<bool>() ? beside_host(std::move(program)) : program;
}

/// From a link that hides nothing to one that hides all, for tensors of some hundred bytes.
inline Link random_link() {
  const auto direction = [] {
    return LinkDirection{static_cast<double>(*rc::gen::inRange(1, 2000)) * 1e7,
                         *rc::gen::inRange<Nanoseconds>(0, 40)};
  };
  return {direction(), direction(), *rc::gen::inRange<Nanoseconds>(0, 15)};
}

}  // namespace offprof
