#include "e2e/reports.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "e2e/offprof_process.h"
#include "tests/support/test_folder.h"

namespace offprof {

nlohmann::json report_of(std::vector<std::string> words) {
  const Ended ended = run_program(joined(std::move(words), {"--format", "json"}));
  EXPECT_EQ(ended.status, 0) << ended.err;
  return nlohmann::json::parse(ended.out, nullptr, false);
}

Bytes capacity_below_keep(std::vector<std::string> words) {
  constexpr Bytes kGranule = 2 * kMiB;
  const nlohmann::json report = report_of(joined(std::move(words), {"--policy", "keep"}));
  const Bytes peak = report["measured"]["device_allocated_peak_bytes"].get<Bytes>();
  return (peak - 1) / kGranule * kGranule;
}

bool keeps_cublas_workspaces() {
  static const std::string version = report_of(
      {"run", zoo_model("mlp", {}), "--device", "virtual", "--steps", "1"})["environment"]["torch_version"];
  int minor = 0;
  return std::sscanf(version.c_str(), "2.%d", &minor) == 1 && minor < 15;
}

std::string zoo_model(const std::string& name, const std::vector<std::string>& options) {
  static const TestFolder folder;
  static std::map<std::vector<std::string>, std::string> made;
  const auto [model, is_new] = made.try_emplace(joined({name}, options));
  if (is_new) {
    model->second = folder / (std::to_string(made.size()) + ".pt");
    const Ended ended = run_program(joined({"zoo", "make", name, "-o", model->second}, options));
    EXPECT_EQ(ended.status, 0) << ended.err;
  }
  return model->second;
}

std::string write_model(const std::string& source, const std::string& path) {
  std::FILE* writer = popen((std::string(OFFPROF_WRITE_MODULE) + " " + path).c_str(), "w");
  std::fputs(source.c_str(), writer);
  EXPECT_EQ(pclose(writer), 0);
  return path;
}

std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace offprof
