#include "engine/devices/virtual_gpu/model/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/devices/virtual_gpu/model/built_in_profiles.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::UnorderedElementsAre;

const std::string& h200_text() {
  static const std::string text = [] {
    for (const auto& [name, profile] : built_in_profiles())
      if (name == "h200") return std::string(profile);
    return std::string();
  }();
  return text;
}

/// Returns the profile's text with `from` replaced by `to`.
std::string changed(const std::string& from, const std::string& to) {
  std::string text = h200_text();
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

Error error_of(const std::string& text) {
  try {
    parse_profile(text, "my.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error;
  }
  ADD_FAILURE() << "no Error was thrown";
  return input_error("");
}

TEST(Profile, ListsItsNamesInTheHelp) {
  EXPECT_THAT(profile_names(), ElementsAre("h200", "h100-80gb", "h100-pcie", "a100-40gb", "a100-80gb", "b200",
                                           "l4", "l40s", "rtx3090", "rtx4090"));
}

TEST(Profile, EveryBuiltInProfileLoadsByItsName) {
  for (const std::string& name : profile_names()) EXPECT_EQ(load_profile(name).name, name);
}

// Two transfers a cycle. Data sheets round, or are below the highest clock.
TEST(Profile, ClocksOfMemoryAgreeWithItsBandwidth) {
  for (const std::string& name : profile_names()) {
    const DeviceProfile profile = load_profile(name);
    const double by_clock = 2e3 * profile.memory_clock_khz * profile.memory_bus_bits / 8;
    EXPECT_NEAR(by_clock / profile.memory_bytes_per_second, 1, 0.03) << name;
  }
}

TEST(Profile, TheH200HasTheFiguresOfItsDataSheet) {
  const DeviceProfile h200 = load_profile("h200");
  EXPECT_EQ(h200.device_name, "NVIDIA H200");
  EXPECT_EQ(h200.memory_bytes, 150109880320);
  EXPECT_EQ(h200.memory_bus_bits, 6144);
  EXPECT_EQ(h200.memory_bytes_per_second, 4.8e12);
  EXPECT_EQ(h200.l2_cache_bytes, 60 * kMiB);
  EXPECT_EQ(h200.multiprocessors, 132);
  EXPECT_EQ(h200.compute_capability_major, 9);
  EXPECT_EQ(h200.compute_capability_minor, 0);
  EXPECT_EQ(h200.max_threads_per_multiprocessor, 2048);
  EXPECT_EQ(h200.max_blocks_per_multiprocessor, 32);
  EXPECT_EQ(h200.registers_per_multiprocessor, 64 * kKiB);
  EXPECT_EQ(h200.shared_memory_per_multiprocessor_bytes, 228 * kKiB);
  EXPECT_EQ(h200.shared_memory_per_block_bytes, 48 * kKiB);
  EXPECT_EQ(h200.shared_memory_per_block_optin_bytes, 227 * kKiB);
  EXPECT_THAT(h200.flops_per_second,
              UnorderedElementsAre(Pair("float64", 66.9e12), Pair("float32", 66.9e12), Pair("tf32", 494.7e12),
                                   Pair("float16", 989.4e12), Pair("bfloat16", 989.4e12)));
}

TEST(Profile, SharedMemoryOfABlockFitsInAMultiprocessor) {
  for (const std::string& name : profile_names()) {
    const DeviceProfile profile = load_profile(name);
    EXPECT_LT(profile.shared_memory_per_block_optin_bytes, profile.shared_memory_per_multiprocessor_bytes)
        << name;
    EXPECT_LE(profile.shared_memory_per_block_bytes, profile.shared_memory_per_block_optin_bytes) << name;
  }
}

TEST(Profile, EveryAssumedFigureIsMarkedUnlessItWasMeasured) {
  for (const auto& [name, text] : built_in_profiles()) {
    const auto sources = nlohmann::json::parse(text).at("sources");
    for (const char* group : {"efficiency", "kernels", "link"})
      EXPECT_THAT(sources.at(group).get<std::string>(),
                  AnyOf(HasSubstr("assumed"), HasSubstr("`offprof calibrate` on")))
          << name << " " << group;
  }
}

TEST(Profile, TheLinkHasLatencyAndBandwidth) {
  EXPECT_EQ(load_profile("l4").link.h2d.duration(25'000'000), 2'000 + 1'000'000);
}

TEST(Profile, ACopyTakesTheMoreTimeFromComputeTheSlowerTheMemoryIs) {
  const Link fast = load_profile("h100-80gb").link, slow = load_profile("l4").link;
  // 54 GB/s take 2 to 3 % of the 3.07 TB/s that kernels bound by memory reach.
  EXPECT_NEAR(54.1 * fast.d2h.compute_ns_per_byte, 0.0086, 0.0001);
  EXPECT_NEAR(55.1 * fast.h2d.compute_ns_per_byte, 0.0129, 0.0001);
  EXPECT_GT(slow.d2h.compute_ns_per_byte, 10 * fast.d2h.compute_ns_per_byte);
}

TEST(Profile, TheRateOfBothDirectionsAtOnceMayBeMissing) {
  const DeviceProfile h200 = load_profile("h200");
  EXPECT_TRUE(h200.link.slows_both());
  const DeviceProfile without =
      parse_profile(changed(",\n    \"bidirectional_bytes_per_second\": 96700000000", ""), "my.json");
  EXPECT_EQ(without.link.bidirectional_bytes_per_second, 0);
  EXPECT_EQ(without.link.d2h, h200.link.d2h);
}

TEST(Profile, TheTimeOfARandomNumberMayBeMissing) {
  const std::string key = ",\n    \"random_number_ns\": 10";
  EXPECT_EQ(load_profile("h200").host.random_number_ns, 10);
  EXPECT_EQ(parse_profile(changed(key, ""), "my.json").host.random_number_ns, 0);
  EXPECT_THROW(parse_profile(changed(key, key + "00000000000"), "my.json"), Error);
}

TEST(Profile, TheTimeOfAPythonFunctionMayBeMissing) {
  EXPECT_EQ(load_profile("h200").host.python_function_ns, 900);
  const DeviceProfile without = parse_profile(changed(",\n    \"python_function_ns\": 900", ""), "my.json");
  EXPECT_EQ(without.host.python_function_ns, 0);
}

TEST(Profile, AnUnknownNameListsTheNamesAndSuggestsOne) {
  try {
    load_profile("h20");
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(
        error.what(),
        "no GPU profile is named 'h20'; the profiles are h200, h100-80gb, h100-pcie, a100-40gb, a100-80gb, "
        "b200, l4, l40s, rtx3090, rtx4090");
    EXPECT_EQ(error.hint(), "Did you mean `h200`?");
  }
}

TEST(Profile, CompletesANameWithoutItsMemorySize) {
  try {
    load_profile("h100");
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "Did you mean `h100-80gb`?");
  }
}

TEST(Profile, APathLoadsAFile) {
  const TestFolder folder;
  const std::string path = folder / "my_gpu.json";
  write_file(path, changed("\"h200\"", "\"mine\""));
  EXPECT_EQ(load_profile(path).name, "mine");
}

TEST(Profile, NamesAMissingFile) {
  EXPECT_THROW(load_profile("./nowhere.json"), Error);
}

TEST(ProfileErrors, NamesAnUnknownKeyItsLineAndASuggestion) {
  const Error error = error_of(changed("\"bus_bits\"", "\"bus_bit\""));
  EXPECT_STREQ(error.what(), "'my.json': line 8: a GPU profile has no key 'memory.bus_bit'");
  EXPECT_EQ(error.hint(), "Did you mean `bus_bits`?");
}

TEST(ProfileErrors, ListsTheKeysForAnUnknownKeyFarFromAll) {
  EXPECT_THAT(error_of(changed("\"bus_bits\"", "\"wheels\"")).hint(),
              AllOf(HasSubstr("Known: bytes, context_bytes, bus_bits"), HasSubstr("latency_ns.")));
}

TEST(ProfileErrors, NamesAnUnknownGroup) {
  EXPECT_THAT(error_of(changed("\"efficiency\": {", "\"eficiency\": {")).what(),
              HasSubstr("no key 'eficiency'"));
}

TEST(ProfileErrors, NamesAMissingKeyAndItsGroupsLine) {
  EXPECT_STREQ(error_of(changed("\"bus_bits\": 6144,", "")).what(),
               "'my.json': line 5: 'memory.bus_bits' is missing");
}

TEST(ProfileErrors, RejectsAMissingSource) {
  EXPECT_THAT(error_of(changed("\"sources\"", "\"source\"")).what(), HasSubstr("no key 'source'"));
}

TEST(ProfileErrors, NamesAValueOfTheWrongTypeAndItsLine) {
  EXPECT_STREQ(error_of(changed("6144", "\"wide\"")).what(),
               "'my.json': line 8: memory.bus_bits: \"wide\" is not a whole number");
  EXPECT_STREQ(error_of(changed("4800000000000", "null")).what(),
               "'my.json': line 10: memory.bytes_per_second: expected a number, found null");
  EXPECT_THAT(error_of(changed("\"h200\"", "200")).what(), HasSubstr("line 3: name: "));
}

TEST(ProfileErrors, RejectsAFigureThatIsNotPositive) {
  EXPECT_STREQ(error_of(changed("6144", "0")).what(),
               "'my.json': line 8: memory.bus_bits: 0 is not between 1 and 2147483647");
  EXPECT_THAT(error_of(changed("4800000000000", "0")).what(), HasSubstr("0 is not a positive number"));
  EXPECT_THAT(error_of(changed("4800000000000", "-1")).what(), HasSubstr("line 10"));
}

TEST(ProfileErrors, RejectsAFigureBeyondAnyGpu) {
  EXPECT_THAT(error_of(changed("4800000000000", "1e-300")).what(),
              HasSubstr("1e-300 is not between 1 and 1e+21"));
  EXPECT_THAT(error_of(changed("\"bytes\": ", "\"bytes\": 9223372036854775")).what(),
              HasSubstr("memory.bytes: "));
  EXPECT_THAT(error_of(changed("\"latency_ns\": ", "\"latency_ns\": 922337203685477")).what(),
              HasSubstr("latency_ns: "));
  EXPECT_THAT(error_of(changed("\"compute\": 0.77", "\"compute\": 1e-300")).what(),
              HasSubstr("efficiency.compute: 1e-300 is less than 0.0001"));
}

TEST(ProfileErrors, RejectsAnEfficiencyAboveOne) {
  EXPECT_THAT(error_of(changed("\"compute\": 0.77", "\"compute\": 70")).what(),
              HasSubstr("efficiency.compute: 70 is more than 1"));
}

TEST(ProfileErrors, NamesBothLinesOfADuplicateKey) {
  EXPECT_STREQ(error_of(changed("\"bus_bits\": 6144,", "\"bus_bits\": 6144,\n\"bus_bits\": 1,")).what(),
               "'my.json': line 9: 'memory.bus_bits' occurs twice, first on line 8");
}

TEST(ProfileErrors, NamesTheLineOfInvalidJson) {
  EXPECT_THAT(error_of(changed("\"bus_bits\":", "\"bus_bits\"")).what(), HasSubstr("is not JSON: line 8"));
}

TEST(ProfileErrors, RejectsAnotherFileFormatOfOffprof) {
  EXPECT_THAT(error_of(R"({"schema": "offprof.policy/1"})").what(),
              HasSubstr("not an offprof GPU profile: it is an offprof policy file"));
}

TEST(ProfileErrors, RejectsAnotherVersion) {
  EXPECT_THAT(error_of(changed("gpu_profile/1", "gpu_profile/2")).what(), HasSubstr("offprof.gpu_profile/2"));
}

TEST(ProfileErrors, RejectsAGroupThatIsNoObject) {
  EXPECT_THAT(
      error_of(R"({"schema": "offprof.gpu_profile/1", "name": "x", "device_name": "y", "memory": 3})").what(),
      HasSubstr("memory"));
}

}  // namespace
}  // namespace offprof
