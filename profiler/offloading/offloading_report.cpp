#include "profiler/offloading/offloading_report.h"

#include <nlohmann/json.hpp>

#include "traces/format/metrics_io.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

nlohmann::ordered_json metrics_or_null(const std::optional<Metrics>& metrics) {
  return metrics ? metrics_to_json(*metrics) : nlohmann::ordered_json(nullptr);
}

}  // namespace

std::string format_offloading_report(const OffloadingReport& report) {
  return dump_json({{"policy", describe(report.policy)},
                    {"measured", metrics_or_null(report.measured)},
                    {"predicted", metrics_or_null(report.predicted)},
                    {"ledger", ledger_to_json(report.ledger)},
                    {"steps", report.steps},
                    {"saved_by_other_hooks", report.saved_by_other_hooks}});
}

}  // namespace offprof
