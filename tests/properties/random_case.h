#pragma once

#include <rapidcheck.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/properties/instruction.h"
#include "tests/properties/operations.h"
#include "tests/support/random_policy.h"

namespace offprof {

/// Generates an operation by its weight. Shrinks to earlier operations; the first ones are the simplest.
inline rc::Gen<std::uint8_t> random_op() {
  std::vector<std::uint8_t> tickets;
  const auto all = operations();
  for (std::size_t op = 0; op < all.size(); ++op)
    tickets.insert(tickets.end(), static_cast<std::size_t>(all[op].weight), static_cast<std::uint8_t>(op));
  const auto ticket = rc::gen::inRange<std::size_t>(0, tickets.size());
  return rc::gen::map(ticket, [tickets = std::move(tickets)](std::size_t drawn) { return tickets[drawn]; });
}

/// Generates an operand, mostly one of the newest tensors, so that chains arise.
inline rc::Gen<std::uint8_t> random_operand() {
  return rc::gen::weightedOneOf<std::uint8_t>(
      {{3, rc::gen::inRange<std::uint8_t>(0, 3)}, {2, rc::gen::inRange<std::uint8_t>(0, 24)}});
}

inline rc::Gen<Instruction> random_instruction() {
  return rc::gen::resize(
      rc::kNominalSize,
      rc::gen::build<Instruction>(rc::gen::set(&Instruction::op, random_op()),
                                  rc::gen::set(&Instruction::first, random_operand()),
                                  rc::gen::set(&Instruction::second, random_operand()),
                                  rc::gen::set(&Instruction::number, rc::gen::inRange<std::uint8_t>(0, 12))));
}

/// Generates no rules in half of the cases, else one or two that send some of the tensors to different
/// places. If `compressed`, tensors for the disk are compressed instead.
inline rc::Gen<std::vector<PolicyRule>> random_rules(Bytes tensor_bytes, bool compressed) {
  const auto rule = rc::gen::apply(
      [tensor_bytes, compressed](const std::string& placement, int filter, Bytes bytes) {
        PolicyRule made;
        made.placement = parse_placement(placement);
        if (compressed && made.placement.place == Place::kDisk) made.placement.place = Place::kCompress;
        if (filter == 1) made.min_bytes = bytes % tensor_bytes;
        if (filter == 2) made.rank = bytes % 3;
        if (filter == 3) made.last = static_cast<std::int32_t>(bytes % 10);
        return made;
      },
      rc::gen::element<std::string>("device", "host", "disk", "recompute", "recompute", "recompute",
                                    "inverted", "inverted+host", "inverted+disk"),
      rc::gen::inRange<int>(0, 4), rc::gen::inRange<Bytes>(0, 1 << 20));
  return rc::gen::mapcat(rc::gen::inRange<std::size_t>(0, 4), [rule](std::size_t drawn) {
    return rc::gen::container<std::vector<PolicyRule>>(drawn < 2 ? 0 : drawn - 1, rule);
  });
}

/// Generates up to about twenty instructions and policies of both kinds. Shrinks by removing instructions and
/// by simplifying the rest.
inline rc::Gen<RandomCase> random_case() {
  constexpr int kMostInstructions = 22;
  constexpr Bytes kTensorBytes = 800;
  const auto policy = [](SchedulerKind scheduler) {
    return rc::gen::resize(rc::kNominalSize, random_policy(scheduler, kTensorBytes));
  };
  const auto any_rules = rc::gen::mapcat(rc::gen::inRange<int>(0, 3), [](int drawn) {
    return random_rules(kTensorBytes, /*compressed=*/drawn == 2);
  });
  return rc::gen::build<RandomCase>(
      rc::gen::set(&RandomCase::program, rc::gen::resize(kMostInstructions, rc::gen::container<Instructions>(
                                                                                random_instruction()))),
      rc::gen::set(&RandomCase::policies,
                   rc::gen::map(rc::gen::tuple(policy(SchedulerKind::kOffload),
                                               policy(SchedulerKind::kOffload), policy(SchedulerKind::kTrl),
                                               rc::gen::resize(rc::kNominalSize, any_rules)),
                                [](std::tuple<Policy, Policy, Policy, std::vector<PolicyRule>> drawn) {
                                  auto& [one, other, trl, rules] = drawn;
                                  other.rules = std::move(rules);
                                  other.disk_buffer_bytes = other.prefetch_bytes;
                                  other.disk_memory_bytes = one.host_memory_bytes;
                                  return std::vector<Policy>{one, other, trl};
                                })));
}

}  // namespace offprof
