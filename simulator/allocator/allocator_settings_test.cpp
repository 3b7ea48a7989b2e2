#include "simulator/allocator/allocator_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(AllocatorSettings, RoundsUpToMultiplesOf512) {
  const AllocatorSettings settings;
  EXPECT_EQ(settings.rounded(1), 512);
  EXPECT_EQ(settings.rounded(512), 512);
  EXPECT_EQ(settings.rounded(513), 1024);
  EXPECT_EQ(settings.rounded(300 * kMiB + 1), 300 * kMiB + 512);
}

TEST(AllocatorSettings, SizesSegmentsByTheRequest) {
  const AllocatorSettings settings;
  EXPECT_EQ(settings.segment_bytes(512), 2 * kMiB);
  EXPECT_EQ(settings.segment_bytes(kMiB), 2 * kMiB);
  EXPECT_EQ(settings.segment_bytes(kMiB + 512), 20 * kMiB);
  EXPECT_EQ(settings.segment_bytes(10 * kMiB - 512), 20 * kMiB);
  EXPECT_EQ(settings.segment_bytes(10 * kMiB), 10 * kMiB);
  EXPECT_EQ(settings.segment_bytes(10 * kMiB + 512), 12 * kMiB);
}

TEST(AllocatorSettings, RoundsToDivisionsOfPowersOfTwo) {
  const AllocatorSettings settings = parse_allocator_settings("roundup_power2_divisions:4");
  EXPECT_EQ(settings.rounded(1200), 1536);  // not more than 4 times 512
  EXPECT_EQ(settings.rounded(2049), 2560);
  EXPECT_EQ(settings.rounded(4096), 4096);
  EXPECT_EQ(settings.rounded(5 * kMiB), 5 * kMiB);
  EXPECT_EQ(settings.rounded(5 * kMiB + 1), 6 * kMiB);
  EXPECT_EQ(settings.rounded(7 * kMiB + 1), 8 * kMiB);
}

TEST(AllocatorSettings, ReadsDivisionsBySizeInterval) {
  const auto settings = parse_allocator_settings("roundup_power2_divisions:[256:1,512:2,1024:4,>:8]");
  EXPECT_EQ(settings.rounded(300 * kMiB + 1), 300 * kMiB + 512);
  EXPECT_EQ(settings.rounded(5 * kMiB + 1), 5 * kMiB + 512) << "the first value holds for all below, too";
  EXPECT_EQ(settings.rounded(513 * kMiB), 768 * kMiB);
  EXPECT_EQ(settings.rounded(1025 * kMiB), 1280 * kMiB);
  EXPECT_EQ(settings.rounded(2049 * kMiB), 2304 * kMiB);
  EXPECT_EQ(settings.rounded(200 * kGiB), 208 * kGiB) << "the last interval holds for all above, too";
}

TEST(AllocatorSettings, ReadsEverySettingOfDeviceMemory) {
  const auto settings = parse_allocator_settings(
      " max_split_size_mb: 64, max_non_split_rounding_mb:40,large_segment_size_mb:32,"
      "garbage_collection_threshold:0.6,per_process_memory_fraction:0.5,expandable_segments:True,backend:"
      "native");
  EXPECT_EQ(settings.max_split_bytes, 64 * kMiB);
  EXPECT_EQ(settings.max_non_split_rounding_bytes, 40 * kMiB);
  EXPECT_EQ(settings.large_segment_bytes, 32 * kMiB);
  EXPECT_EQ(settings.garbage_collection_threshold, 0.6);
  EXPECT_EQ(settings.per_process_memory_fraction, 0.5);
  EXPECT_TRUE(settings.expandable_segments);
}

TEST(AllocatorSettings, DefaultsArePyTorchs) {
  const auto settings = parse_allocator_settings("");
  EXPECT_EQ(settings.max_split_bytes, kUnlimitedBytes);
  EXPECT_EQ(settings.max_non_split_rounding_bytes, 20 * kMiB);
  EXPECT_EQ(settings.large_segment_bytes, 20 * kMiB);
  EXPECT_FALSE(settings.expandable_segments);
}

TEST(AllocatorSettings, LargeSegmentSizeIsTheDefaultOfTheNonSplitRounding) {
  EXPECT_EQ(parse_allocator_settings("large_segment_size_mb:64").max_non_split_rounding_bytes, 64 * kMiB);
}

TEST(AllocatorSettings, KeepsTheOriginalText) {
  EXPECT_EQ(parse_allocator_settings("max_split_size_mb:64").text, "max_split_size_mb:64");
}

TEST(AllocatorSettings, IgnoresSettingsOfPinnedMemory) {
  const auto settings = parse_allocator_settings(
      "pinned_use_background_threads:True,pinned_num_register_threads:8,max_split_size_mb:64");
  EXPECT_EQ(settings.max_split_bytes, 64 * kMiB);
}

TEST(AllocatorSettings, AcceptsSettingsOfLaterVersionsWithoutEffect) {
  const auto settings = parse_allocator_settings(
      "pinned_free_catch_all:True,pinned_max_round_threshold_mb:64,pinned_max_cached_size_mb:64,"
      "throw_on_cudamalloc_oom:False,max_split_size_mb:64");
  EXPECT_EQ(settings.max_split_bytes, 64 * kMiB);
}

struct BadSettings {
  const char* text;
  const char* why;
};

class RefusedSettings : public testing::TestWithParam<BadSettings> {};

TEST_P(RefusedSettings, ThrowAnErrorWithTheReason) {
  EXPECT_THAT([&] { parse_allocator_settings(GetParam().text); },
              ThrowsMessage<Error>(testing::AllOf(HasSubstr(GetParam().why), HasSubstr(GetParam().text))));
}

INSTANTIATE_TEST_SUITE_P(
    AllocatorSettings, RefusedSettings,
    testing::Values(
        BadSettings{"max_split:64", "'max_split' is not a setting"},
        BadSettings{"throw_on_cudamalloc_oom:True", "an estimate that is not modelled"},
        BadSettings{"expandable_segments_reserve:0.5", "smaller than the device's memory are not modelled"},
        BadSettings{"expandable_segments_reserve_by_class:[a:0.5]", "are not modelled"},
        BadSettings{"max_split_size_mb:19", "max_split_size_mb must be at least 20"},
        BadSettings{"max_split_size_mb:40,large_segment_size_mb:64", "max_split_size_mb must be at least 64"},
        BadSettings{"max_non_split_rounding_mb:1", "max_non_split_rounding_mb must be at least 20"},
        BadSettings{"large_segment_size_mb:10", "large_segment_size_mb must be at least 11"},
        BadSettings{"max_split_size_mb:many", "'many' is not a number"},
        BadSettings{"max_split_size_mb", "expected ':' at the end"},
        BadSettings{"max_split_size_mb:", "it ends too early"},
        BadSettings{"max_split_size_mb:64 expandable_segments:True",
                    "'64expandable_segments' is not a number"},
        BadSettings{"max_split_size_mb:64:32", "expected ',' before ':'"},
        BadSettings{"roundup_power2_divisions:4611686018427387904", "is more than 1099511627776"},
        BadSettings{"garbage_collection_threshold:1", "between 0 and 1"},
        BadSettings{"garbage_collection_threshold:0", "between 0 and 1"},
        BadSettings{"per_process_memory_fraction:1.5", "between 0 and 1"},
        BadSettings{"roundup_power2_divisions:3", "3 is not a power of two"},
        BadSettings{"roundup_power2_divisions:0", "0 is not a power of two"},
        BadSettings{"roundup_power2_divisions:[3:4]", "3 MiB is not a power of two"},
        BadSettings{"roundup_power2_divisions:[256:3]", "3 is not a power of two"},
        BadSettings{"roundup_power2_divisions:[256:4", "expected ',' at the end"},
        BadSettings{"expandable_segments:true", "True or False, not 'true'"},
        BadSettings{"expandable_segments:True,large_segment_size_mb:21", "granules of 2 MiB"},
        BadSettings{"backend:cudaMallocAsync", "not modelled"},
        BadSettings{"backend:mine", "native or cudaMallocAsync"}));

}  // namespace
}  // namespace offprof
