#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <optional>
#include <ostream>
#include <set>
#include <vector>

#include "traces/model/policy.h"

namespace offprof {

/// Prints a policy for rapidcheck.
inline std::ostream& operator<<(std::ostream& out, const Policy& policy) {
  return out << describe(policy);
}

/// Generates nullopt now and then, else a number from 0 to below `end`.
template <typename T>
rc::Gen<std::optional<T>> random_limit(T end) {
  return rc::gen::weightedOneOf<std::optional<T>>(
      {{1, rc::gen::just(std::optional<T>())},
       {3, rc::gen::map(rc::gen::inRange<T>(0, end), [](T value) { return std::optional<T>(value); })}});
}

using Plan = std::optional<std::vector<std::int32_t>>;

/// Generates no plan half the time, else a plan of some of the first tensors.
inline rc::Gen<Plan> random_plan() {
  constexpr std::int32_t kMostPlanned = 16;
  const auto numbers = rc::gen::container<std::set<std::int32_t>>(rc::gen::inRange(0, kMostPlanned));
  return rc::gen::oneOf<Plan>(rc::gen::just(Plan()),
                              rc::gen::map(numbers, [](const std::set<std::int32_t>& plan) {
                                return Plan(std::in_place, plan.begin(), plan.end());
                              }));
}

/// Generates every kind of scheduler.
inline rc::Gen<SchedulerKind> random_scheduler() {
  return rc::gen::map(rc::gen::elementOf(kSchedulers),
                      [](const SchedulerTraits& traits) { return traits.kind; });
}

/// Generates policies that make a difference for tensors of about `bytes` each. For property tests.
inline rc::Gen<Policy> random_policy(SchedulerKind scheduler, Bytes bytes) {
  constexpr std::int64_t kMostStashed = 5;
  constexpr Bytes kMostAhead = 3, kMostInHostMemory = 10;  // in tensors
  return rc::gen::build<Policy>(
      rc::gen::set(&Policy::scheduler, rc::gen::just(scheduler)),
      rc::gen::set(&Policy::threshold_bytes, random_limit<Bytes>(bytes)),
      rc::gen::set(&Policy::stash_count, random_limit<std::int64_t>(kMostStashed)),
      rc::gen::set(&Policy::stash_bytes, random_limit<Bytes>(kMostAhead * bytes)),
      rc::gen::set(&Policy::prefetch_bytes, rc::gen::inRange<Bytes>(0, kMostAhead * bytes)),
      rc::gen::set(&Policy::host_memory_bytes, random_limit<Bytes>(kMostInHostMemory * bytes)),
      rc::gen::set(&Policy::tensors,
                   traits_of(scheduler).has_few_settings ? rc::gen::just(Plan()) : random_plan()),
      rc::gen::set(&Policy::copy_streams,
                   traits_of(scheduler).has_few_settings ? rc::gen::just(1) : rc::gen::inRange(1, 3)));
}

/// Generates policies with a disk and a rule that places tensors on it. For tests that do not resolve rules.
inline rc::Gen<Policy> random_disk_policy(Bytes bytes) {
  constexpr Bytes kMostOnDisk = 12, kMostInBuffer = 4;  // in tensors
  const auto with_disk = [](Policy policy, std::optional<Bytes> disk, Bytes buffer) {
    policy.disk_memory_bytes = disk;
    policy.disk_buffer_bytes = buffer;
    policy.rules.emplace_back().placement.place = Place::kDisk;
    return policy;
  };
  return rc::gen::apply(with_disk, random_policy(SchedulerKind::kOffload, bytes),
                        random_limit<Bytes>(kMostOnDisk * bytes),
                        rc::gen::inRange<Bytes>(0, kMostInBuffer * bytes));
}

}  // namespace offprof
