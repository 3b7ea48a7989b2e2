#include "cli/doctor_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DoctorReport report_with(Health engine) {
  return make_doctor_report({{"engine", engine, "some detail", "scripts/setup.sh"},
                             {"HTA", Health::kOptional, "not installed", "pip install it"}});
}

TEST(Doctor, RunWorksWhereNothingThatItNeedsIsMissing) {
  EXPECT_TRUE(report_with(Health::kWorks).run_works);
  EXPECT_FALSE(report_with(Health::kMissing).run_works);
}

TEST(Doctor, EveryMissingThingComesWithWhatMendsIt) {
  EXPECT_THAT(to_text(report_with(Health::kMissing), {}),
              AllOf(HasSubstr("missing   engine"), HasSubstr("mend: scripts/setup.sh"),
                    HasSubstr("does not work here")));
}

TEST(Doctor, AMissingDeviceIsNotAMissingEngine) {
  const DoctorReport report = make_doctor_report(
      {{"engine", Health::kWorks, "a path", ""}, {"virtual GPU", Health::kMissing, "broken", "build it"}});
  EXPECT_FALSE(report.run_works);
  EXPECT_THAT(to_text(report, {}), HasSubstr("works here on other devices"));
}

TEST(Doctor, TextAndJsonTellTheSame) {
  const auto json = to_json(report_with(Health::kMissing));
  EXPECT_EQ(json["run_works"], false);
  EXPECT_EQ(json["findings"].at(0)["status"], "missing");
  EXPECT_EQ(json["findings"].at(1)["mend"], "pip install it");
}

TEST(Doctor, LooksAtEverything) {
  std::vector<std::string> names;
  for (const Finding& finding : examine_machine()) {
    names.push_back(finding.name);
    EXPECT_EQ(finding.mend.empty(), finding.health == Health::kWorks) << finding.name;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"offprof", "engine", "processor", "memory", "disk tier",
                                            "compression", "NVIDIA driver", "HTA"}));
}

}  // namespace
}  // namespace offprof
