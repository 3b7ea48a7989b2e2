// Tests of random autograd programs under random policies.
//
//   property_test [--replay FILE] [--keep FOLDER] [--steps N] [GOOGLETEST_OPTION...]
//
//   --replay FILE    runs only the case in FILE and prints the checks that fail
//   --keep FOLDER    folder for case files (.): failing.DEVICE.json, the shrunk case of a failed property;
//                    running.DEVICE.json, the current case, which remains if the program crashes
//   --steps N        steps of the long run (200; 500 with OFFPROF_TEST_EXTENT=full)
//
// RC_PARAMS, as rapidcheck reads it, controls the random cases ("seed=42 max_success=1000"). Without it the
// cases are the same every time. property_test has the device `host`, virtual_property_test the virtual GPU.
#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

#include "engine/storage/block_codec.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/properties/case_check.h"
#include "tests/properties/case_file.h"
#include "tests/properties/device_under_test.h"
#include "tests/properties/options.h"
#include "tests/properties/random_case.h"
#include "tests/support/run_tests.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr const char* kAllCases = "seed=20 max_success=400";
constexpr const char* kCasesOfEveryChange = "seed=20 max_success=200";

std::string file_of(const char* what) {
  return Options::get().keep + "/" + what + "." + device_under_test_name() + ".json";
}

void write(const std::string& path, const RandomCase& random_case,
           const std::vector<std::string>& findings = {}) {
  std::ofstream(path) << format_case(random_case, findings);
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

void print(const Coverage& coverage) {
  std::cout << coverage.programs << " programs, of which LibTorch refused an operation in "
            << coverage.refused << " and " << coverage.recorded << " were recorded; "
            << coverage.operations.size() << " of " << operations().size() << " operations; "
            << coverage.policies << " runs under a policy, of which " << coverage.predictions
            << " were compared with their simulation and " << coverage.asked_again
            << " refused by TRL's rules, " << coverage.half_dense << " half dense and " << coverage.compressed
            << " over compressed memory; " << coverage.recomputations << " recomputations, executed "
            << coverage.recomputed << " times, " << coverage.not_recomputed << " of " << coverage.recomputing
            << " runs refused to recompute\n";
  for (const auto& [why, programs] : coverage.not_recorded)
    std::cout << programs << " not recorded: " << why << "\n";
}

TEST(PropertyTest, RandomProgramsHaveTheGradientsOfPlainAutogradAndTheSimulatedMemory) {
  CountingDevice device(device_under_test());
  CaseCheck check(device);
  const bool holds = rc::check("random programs under random policies", [&] {
    const RandomCase drawn = *random_case();
    write(file_of("running"), drawn);
    const std::vector<std::string> findings = check.findings_of(drawn);
    if (findings.empty()) return;
    write(file_of("failing"), drawn, findings);
    RC_FAIL(joined(findings));
  });
  print(check.coverage());
  EXPECT_TRUE(holds) << "the case is in " << file_of("failing") << "; --replay runs it";
  std::filesystem::remove(file_of("running"));
  const Coverage& coverage = check.coverage();
  EXPECT_TRUE(!holds || 2 * coverage.recorded >= coverage.programs) << "too few programs could be recorded";
  EXPECT_GT(coverage.recomputed, 0U);
  EXPECT_LE(10 * coverage.not_recomputed, coverage.recomputing)
      << "too many steps refused to recompute tensors";
  EXPECT_EQ(coverage.compressed > 0, has_block_codec());
}

std::vector<std::string> findings_of(const RandomCase& known) {
  CountingDevice device(device_under_test());
  return CaseCheck(device).findings_of(known);
}

Instructions program_of(const std::vector<std::string_view>& names) {
  Instructions program;
  for (const std::string_view name : names) {
    const auto found = std::ranges::find(operations(), name, &Operation::name);
    program.push_back({static_cast<std::uint8_t>(found - operations().begin()), 0, 0, 3});
  }
  return program;
}

Policy trl_from(Bytes threshold) {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = threshold;
  policy.stash_count = 0;
  return policy;
}

/// TRL's stash always holds its last tensor until a node has run, which may be longer than the program does.
/// This matters if that tensor is below the threshold, so that the one before it is the last.
TEST(PropertyTest, SimulatesAKeptTensorThatOnlyTheStashHeldInTheRecording) {
  EXPECT_THAT(findings_of({program_of({"chunk", "custom_function", "broadcast"}), {trl_from(25)}}),
              testing::IsEmpty());
}

/// A part without elements: autograd holds it beyond its node if it is a view of another's memory, but not if
/// a dense copy of it has come back.
TEST(PropertyTest, SimulatesAnEmptyPartThatADenseCopyWouldReleaseEarlier) {
  Instructions program = program_of({"add", "nothing_of_it", "checkpoint", "broadcast"});
  for (Instruction& instruction : program) instruction.number = 0;
  program[2].number = 11;
  Policy policy = trl_from(0);
  policy.threshold_bytes.reset();
  EXPECT_THAT(findings_of({program, {policy}}), testing::IsEmpty());
}

int replay(const std::string& path) {
  CountingDevice device(device_under_test());
  CaseCheck check(device);
  const std::vector<std::string> findings = check.findings_of(read_case(path));
  print(check.coverage());
  std::cout << (findings.empty() ? "All checks passed." : "Checks failed:") << joined(findings) << "\n";
  return findings.empty() ? 0 : 1;
}

void parse(int argc, char** argv) {
  Options& options = Options::get();
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(name + ": no such option, or its value is missing");
    const std::string value = argv[++i];
    if (name == "--replay")
      options.replay = value;
    else if (name == "--keep")
      options.keep = value;
    else if (name == "--steps")
      options.steps = std::stoi(value);
    else
      throw std::invalid_argument(name + ": no such option");
  }
}

}  // namespace
}  // namespace offprof

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  setenv("RC_PARAMS", offprof::has_full_extent() ? offprof::kAllCases : offprof::kCasesOfEveryChange,
         /*overwrite=*/0);
  try {
    offprof::parse(argc, argv);
    const std::string& file = offprof::Options::get().replay;
    return file.empty() ? offprof::run_tests() : offprof::replay(file);
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << "\n";
    return 2;
  }
}
