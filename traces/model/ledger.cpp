#include "traces/model/ledger.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace offprof {
namespace {

constexpr std::array<std::string_view, static_cast<std::size_t>(PlacementReason::kCount)> kReasons = {
    "offloaded",
    "shared_copy",
    "parameter",
    "buffer",
    "input",
    "resident",
    "empty",
    "unsupported_layout",
    "below_threshold",
    "nothing_offloaded",
    "host_full",
    "not_in_plan",
    "rule",
    "unfit_to_encode",
    "parameter_group",
    "disk_full",
    "unfit_to_recompute",
    "unpacked",
};
static_assert(std::ranges::none_of(kReasons, &std::string_view::empty), "a reason has no name");

}  // namespace

std::string_view to_string(PlacementReason reason) {
  return kReasons.at(static_cast<std::size_t>(reason));
}

}  // namespace offprof
