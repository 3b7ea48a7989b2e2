#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <pugixml.hpp>

#include "cli/gate/gate_report.h"
#include "tests/support/cli_run.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Check failed_check() {
  return {.key = "device_peak_bytes",
          .unit = MetricUnit::kBytes,
          .baseline = 1024,
          .value = 3072,
          .bound = 1024,
          .limit = "<=+0%"};
}

Check passed_check() {
  Check check = failed_check();
  check.key = "host_peak_bytes";
  check.value = 512;
  check.ok = true;
  return check;
}

GateSuite suite_of(std::vector<Check> checks) {
  GateReport report{
      .trace = "t.json", .baseline = "b.json", .verdict = {.checks = std::move(checks), .notes = {}}};
  report.verdict.ok = std::ranges::all_of(report.verdict.checks, &Check::ok);
  report.key = "llama/virtual:h200";
  return {.gates = {report}, .is_list = false};
}

/// Runs in a folder that has the source file.
class GithubFormat : public testing::Test {
 protected:
  GithubFormat() {
    std::filesystem::create_directories(folder_ / "src");
    write_file(folder_ / "src/model.py", "");
    std::filesystem::current_path(folder_ / "");
  }
  ~GithubFormat() override { std::filesystem::current_path(before_); }

  std::filesystem::path before_ = std::filesystem::current_path();
  TemporaryFolder folder_{"github_format"};
};

TEST_F(GithubFormat, AnnotatesTheLineThatGrewTheMost) {
  GateSuite suite = suite_of({failed_check(), passed_check()});
  suite.gates[0].sites = {{{"aten::gelu", "layers.*.mlp", "model.py:12"}, {1, 1024}, {2, 3072}},
                          {{"aten::mm", "head", "model.py:20"}, {1, 10}, {2, 20}}};
  suite.gates[0].source_roots = {".", "src"};
  EXPECT_EQ(to_github(suite),
            "::error file=src/model.py,line=12,title=offprof gate llama/virtual%3Ah200%3A device_peak_bytes::"
            "device_peak_bytes is 3.00 KiB, baseline 1.00 KiB, change +2.00 KiB (+200.0%25), limit <=+0%25"
            "%0ASaved for backward: +2.00 KiB aten::gelu in layers.*.mlp, model.py:12\n");
}

TEST_F(GithubFormat, NamesNoFileOutsideOfTheRepository) {
  GateSuite suite = suite_of({failed_check()});
  suite.gates[0].sites = {{{"aten::gelu", "", "other.py:12"}, {1, 1024}, {2, 3072}}};
  suite.gates[0].source_roots = {"."};
  EXPECT_THAT(to_github(suite), StartsWith("::error title="));
  suite.gates[0].sites[0].site.line = "model.py:12";
  suite.gates[0].source_roots = {(folder_ / "src")};
  EXPECT_THAT(to_github(suite), StartsWith("::error file=src/model.py,line=12,title="));
  std::filesystem::create_directories("elsewhere");
  std::filesystem::current_path("elsewhere");
  EXPECT_THAT(to_github(suite), StartsWith("::error title="));
}

TEST_F(GithubFormat, EscapesWhatTheRunnerInterprets) {
  Check check{.key = "model", .limit = "same"};
  check.baseline_text = "a%0A\r\n::stop-commands::x";
  check.value_text = "b";
  GateSuite suite = suite_of({check});
  suite.gates[0].key = "a,b:c";
  const std::string text = to_github(suite);
  EXPECT_THAT(text, AllOf(HasSubstr("title=offprof gate a%2Cb%3Ac%3A model::"), HasSubstr("a%250A"),
                          HasSubstr("%0A::stop")));
  EXPECT_EQ(std::ranges::count(text, '\n'), 1);
  EXPECT_THAT(text, Not(HasSubstr("\r")));
}

TEST_F(GithubFormat, ShowsAtMostTenErrors) {
  const std::string text = to_github(suite_of(std::vector<Check>(12, failed_check())));
  EXPECT_EQ(std::ranges::count(text, '\n'), 10);
  EXPECT_THAT(text, HasSubstr("::3 more checks failed\n"));
}

TEST_F(GithubFormat, SaysThatAllPassed) {
  EXPECT_EQ(to_github(suite_of({passed_check()})), "::notice title=offprof gate::passed, 1 checks\n");
}

TEST(JunitFormat, HasWhatItsReadersNeed) {
  GateSuite suite = suite_of({failed_check(), passed_check()});
  suite.gates[0].verdict.notes = {"a note"};
  suite.gates[0].sites = {{{"aten::gelu", "", "model.py:12"}, {1, 1024}, {2, 3072}}};
  pugi::xml_document document;
  ASSERT_TRUE(document.load_string(to_junit(suite).c_str()));
  const pugi::xml_node root = document.child("testsuites"), tests = root.child("testsuite");
  EXPECT_EQ(root.attribute("tests").as_int(), 2);
  EXPECT_EQ(root.attribute("failures").as_int(), 1);
  EXPECT_STREQ(tests.attribute("name").value(), "offprof gate llama/virtual:h200");
  EXPECT_EQ(tests.attribute("tests").as_int(), 2);
  EXPECT_EQ(tests.attribute("failures").as_int(), 1);
  EXPECT_EQ(tests.attribute("errors").as_int(), 0);
  const pugi::xml_node first = tests.first_child(), second = first.next_sibling();
  EXPECT_STREQ(first.attribute("name").value(), "device_peak_bytes <=+0%");
  EXPECT_STREQ(first.attribute("classname").value(), "offprof gate llama/virtual:h200");
  EXPECT_THAT(first.child("failure").attribute("message").value(), HasSubstr("limit <=+0%"));
  EXPECT_THAT(first.child_value("failure"), HasSubstr("+2.00 KiB aten::gelu, model.py:12"));
  EXPECT_FALSE(second.first_child());
  EXPECT_STREQ(tests.child_value("system-out"), "a note");
}

TEST(JunitFormat, EscapesMarkupAndControlCharacters) {
  GateSuite suite = suite_of({failed_check()});
  suite.gates[0].key = "<a & \"b\">\x01";
  pugi::xml_document document;
  const std::string text = to_junit(suite);
  EXPECT_THAT(text, Not(HasSubstr("\x01")));
  ASSERT_TRUE(document.load_string(text.c_str()));
  EXPECT_STREQ(document.child("testsuites").child("testsuite").attribute("name").value(),
               "offprof gate <a & \"b\">\\u0001");
}

TEST(MarkdownFormat, HasARowForEachCheck) {
  const std::string text = to_markdown(suite_of({failed_check(), passed_check()}));
  EXPECT_THAT(
      text,
      AllOf(
          HasSubstr("### offprof gate llama/virtual:h200: failed, 1 of 2 checks"),
          HasSubstr(
              "| device\\_peak\\_bytes | 1.00 KiB | 3.00 KiB | +2.00 KiB (+200.0%) | \\<=+0% | **failed** |"),
          HasSubstr("| host\\_peak\\_bytes | 1.00 KiB | 512 B | -512 B (-50.0%) | \\<=+0% | ok |")));
}

TEST(MarkdownFormat, ListsWhereTheTensorsOfAFailureComeFrom) {
  GateSuite suite = suite_of({failed_check()});
  suite.gates[0].sites = {{{"aten::gelu", "mlp", "model.py:12"}, {1, 1024}, {2, 3072}}};
  suite.gates[0].peak_sites = {{{"aten::mm", "head", "model.py:20"}, {1, 1024}, {1, 2048}}};
  EXPECT_THAT(to_markdown(suite),
              AllOf(HasSubstr("Saved for backward:"), HasSubstr("\n| +2.00 KiB | 1 to 2 | aten::gelu |"),
                    HasSubstr("In use at the peak:"), HasSubstr("\n| +1.00 KiB | 1 to 1 | aten::mm |")));
}

TEST(MarkdownFormat, KeepsCellsApart) {
  Check check = failed_check();
  check.why = "a|b\n<script>";
  EXPECT_THAT(to_markdown(suite_of({check})), HasSubstr("**failed: a\\|b\\\\u000a\\<script\\>**"));
}

}  // namespace
}  // namespace offprof
