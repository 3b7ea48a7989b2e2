#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/cli_run.h"
#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"
#include "traces/io/byte_source.h"
#include "traces/io/file.h"
#include "traces/io/gzip.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string between(const std::string& text, const std::string& before, const std::string& after) {
  const std::size_t begin = text.find(before) + before.size();
  return text.substr(begin, text.find(after, begin) - begin);
}

std::string from_base64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  unsigned bits = 0, count = 0;
  for (const char digit : text) {
    if (digit == '=') break;
    bits = bits << 6 | static_cast<unsigned>(digits.find(digit));
    count += 6;
    if (count >= 8) bytes += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return bytes;
}

/// Returns the data in a page.
nlohmann::json data_of(const std::string& html) {
  const std::string packed = from_base64(between(html, "id=\"data\">", "</script>"));
  const auto source = decompress_gzip(std::make_unique<TextSource>(packed), "data");
  std::string text(std::size_t{1} << 20, '\0');
  text.resize(source->read(text));
  return nlohmann::json::parse(text);
}

class ReportCommand : public testing::Test {
 protected:
  /// Writes the trace of a chain of layers under a policy.
  std::string write(const std::string& name, const std::string& policy) const {
    Trace trace = sample_trace();
    trace.program = ChainSketch::program(4, 1000);
    trace.policy = preset_policy(policy);
    write_trace(folder_ / name, trace);
    return folder_ / name;
  }

  std::string page_of(const std::vector<std::string>& traces,
                      const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> words = {"report", "-o", folder_ / "report.html"};
    words.insert(words.end(), traces.begin(), traces.end());
    words.insert(words.end(), flags.begin(), flags.end());
    const CliRun run = run_words(words);
    EXPECT_EQ(run.status, 0) << run.err;
    return read_file(folder_ / "report.html");
  }

  TemporaryFolder folder_{"report_command"};
};

TEST_F(ReportCommand, WritesAPageThatLoadsNothing) {
  EXPECT_THAT(page_of({write("t.json", "keep")}),
              AllOf(HasSubstr("<!DOCTYPE html>"), HasSubstr("default-src 'none'; style-src 'sha256-"),
                    Not(HasSubstr("src=\"http")), Not(HasSubstr("@import")), Not(HasSubstr("style=\""))));
}

TEST_F(ReportCommand, PageHasThePredictedPeakToTheByte) {
  const std::string trace = write("t.json", "offload");
  const auto data = data_of(page_of({trace}));
  const CliRun simulated = run_words({"simulate", trace, "--policy", "offload", "--format", "json"});
  EXPECT_EQ(data["runs"][0]["predicted"]["device_peak_bytes"],
            nlohmann::json::parse(simulated.out)["predicted"]["device_peak_bytes"]);
}

TEST_F(ReportCommand, PageHasTheFrontierUnlessItIsLeftOut) {
  const std::string trace = write("t.json", "keep");
  EXPECT_FALSE(data_of(page_of({trace}))["frontier"]["points"].empty());
  EXPECT_FALSE(data_of(page_of({trace}, {"--no-frontier"})).contains("frontier"));
}

TEST_F(ReportCommand, NamesTheRunsByTheirPoliciesOrElseByTheirFiles) {
  const std::string a = write("a.json", "keep"), b = write("b.json", "offload"), c = write("c.json", "keep");
  const auto policies = data_of(page_of({a, b}, {"--no-frontier"}));
  EXPECT_EQ(policies["runs"][0]["label"], "keep");
  EXPECT_EQ(policies["runs"][1]["label"], "offload");
  const auto files = data_of(page_of({a, c}, {"--no-frontier"}));
  EXPECT_EQ(files["runs"][0]["label"], "a.json");
  EXPECT_EQ(files["runs"][1]["label"], "c.json");
}

TEST_F(ReportCommand, PrintsTheVerdictOfThePage) {
  const std::string trace = write("t.json", "keep");
  const CliRun run = run_words({"report", trace, "--no-frontier", "-o", folder_ / "r.html"});
  EXPECT_THAT(unwrapped(run.out), AllOf(HasSubstr("The step peaks at"), HasSubstr("r.html")));
  EXPECT_THAT(read_file(folder_ / "r.html"), HasSubstr("<p>The step peaks at"));
}

TEST_F(ReportCommand, WritesThePageToStandardOutput) {
  const CliRun run = run_words({"report", write("t.json", "keep"), "--no-frontier", "-o", "-"});
  EXPECT_EQ(run.out.find("<!DOCTYPE html>"), 0U);
  EXPECT_THAT(run.err, HasSubstr("The step peaks at"));
}

TEST_F(ReportCommand, EscapesTheNameOfTheModel) {
  Trace trace = sample_trace();
  trace.model.name = "<script>alert(1)</script>.pt";
  write_trace(folder_ / "t.json", trace);
  EXPECT_THAT(page_of({folder_ / "t.json"}, {"--no-frontier"}), Not(HasSubstr("<script>alert")));
}

TEST_F(ReportCommand, RefusesAMissingTraceAndWritesNoPage) {
  const CliRun run = run_words({"report", folder_ / "none.json", "-o", folder_ / "r.html"});
  EXPECT_EQ(run.status, 2);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "r.html"));
}

}  // namespace
}  // namespace offprof
