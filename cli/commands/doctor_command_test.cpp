#include "cli/commands/doctor_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

DoctorReport report_with(Health engine) {
  return make_doctor_report({{"engine", engine, "some detail", "scripts/setup.sh"},
                             {"HTA", Health::kOptional, "not installed", "pip install it"}});
}

TEST(Doctor, RunWorksIfItsRequirementsAreMet) {
  EXPECT_TRUE(report_with(Health::kWorks).run_works);
  EXPECT_FALSE(report_with(Health::kMissing).run_works);
}

TEST(Doctor, ShowsAFixForEachMissingComponent) {
  EXPECT_THAT(to_text(report_with(Health::kMissing), {}),
              AllOf(HasSubstr("missing   engine"), HasSubstr("fix: scripts/setup.sh"),
                    HasSubstr("does not work on this machine")));
}

TEST(Doctor, AMissingDeviceIsNotAMissingEngine) {
  const DoctorReport report = make_doctor_report(
      {{"engine", Health::kWorks, "a path", ""}, {"virtual GPU", Health::kMissing, "broken", "build it"}});
  EXPECT_FALSE(report.run_works);
  EXPECT_THAT(to_text(report, {}), HasSubstr("except on the devices that are missing"));
}

/// Removes the line breaks of `wrap`, which are followed by `column` blanks.
std::string joined_lines(std::string text, std::size_t column) {
  const std::string broken = "\n" + std::string(column, ' ');
  for (std::size_t at = 0; (at = text.find(broken, at)) != std::string::npos;)
    text.replace(at, broken.size(), " ");
  return text;
}

TEST(Doctor, HintsFitThePage) {
  constexpr std::size_t kHintColumn = 32;
  const std::string commands = "scripts/setup.sh && cmake --preset release && cmake --build --preset release";
  const std::string prose =
      "an NVIDIA GPU, its driver, and next to LibTorch the NVIDIA packages that the torch wheel depends on; "
      "scripts/setup.sh does not install them";
  const DoctorReport report = make_doctor_report({{"engine", Health::kMissing, "not built", commands},
                                                  {"CUDA device", Health::kOptional, "none", prose}});
  for (const std::size_t width : {80U, 120U}) {
    const std::string text = to_text(report, {.width = width});
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
    EXPECT_THAT(joined_lines(text, kHintColumn), AllOf(HasSubstr(commands), HasSubstr(prose)));
  }
}

TEST(Doctor, BreaksHintsOnlyBetweenCommands) {
  const DoctorReport report = make_doctor_report(
      {{"engine", Health::kMissing, "not built", "scripts/setup.sh && cmake --build --preset release -j 2"}});
  EXPECT_THAT(to_text(report, {.width = 80}), HasSubstr("fix: scripts/setup.sh &&\n" + std::string(32, ' ') +
                                                        "cmake --build --preset release"));
}

TEST(Doctor, TextAndJsonAgree) {
  const auto json = to_json(report_with(Health::kMissing));
  EXPECT_EQ(json["run_works"], false);
  EXPECT_EQ(json["findings"].at(0)["status"], "missing");
  EXPECT_EQ(json["findings"].at(1)["fix"], "pip install it");
}

TEST(Doctor, ChecksEveryComponent) {
  std::vector<std::string> names;
  for (const Finding& finding : examine_machine()) {
    names.push_back(finding.name);
    EXPECT_EQ(finding.fix.empty(), finding.health == Health::kWorks) << finding.name;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"offprof", "engine", "processor", "memory", "disk tier",
                                            "compression", "NVIDIA driver", "HTA"}));
}

}  // namespace
}  // namespace offprof
