#include "traces/model/ledger.h"

#include <array>
#include <cstddef>

namespace offprof {
namespace {

constexpr std::array<std::string_view, 18> kReasons = {
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
static_assert(kReasons.size() == static_cast<std::size_t>(PlacementReason::kUnpacked) + 1);

}  // namespace

std::string_view to_string(PlacementReason reason) {
  return kReasons.at(static_cast<std::size_t>(reason));
}

}  // namespace offprof
