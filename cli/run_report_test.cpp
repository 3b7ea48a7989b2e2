#include "cli/run_report.h"

#include <gtest/gtest.h>

#include "traces/sample_trace.h"

namespace offprof {
namespace {

TEST(RunReport, JsonHasTheWarningsAboutTimes) {
  const Trace trace = sample_trace();
  RunReport report;
  report.run = figures_of(trace, "t.json");
  EXPECT_FALSE(to_json(report).contains("warnings"));
  report.warnings = {"predicted times mean little"};
  EXPECT_EQ(to_json(report)["warnings"][0], "predicted times mean little");
}

}  // namespace
}  // namespace offprof
