#include "cli/help/value_candidates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(ValueCandidates, WordsInLowerCaseStandForThemselves) {
  EXPECT_THAT(candidates_of_type("text|json").words, ElementsAre("text", "json"));
}

TEST(ValueCandidates, TypesOfNumbersHaveNone) {
  const ValueCandidates found = candidates_of_type("BYTES_PER_S[,LATENCY][,shared]");
  EXPECT_THAT(found.words, IsEmpty());
  EXPECT_EQ(found.shell_names, ShellNames::kNone);
}

TEST(ValueCandidates, FilesAndFoldersAreOfTheShell) {
  EXPECT_EQ(candidates_of_type("FILE").shell_names, ShellNames::kFiles);
  EXPECT_EQ(candidates_of_type("DIR").shell_names, ShellNames::kFolders);
}

TEST(ValueCandidates, AlternativesAddUp) {
  const ValueCandidates found = candidates_of_type("PRESET|FILE");
  EXPECT_THAT(found.words, Contains("trl"));
  EXPECT_EQ(found.shell_names, ShellNames::kFiles);
}

TEST(ValueCandidates, PartsInBracketsMayFollow) {
  const ValueCandidates found = candidates_of_type("host|cuda[:N]|virtual[:PROFILE]");
  EXPECT_THAT(found.words, testing::IsSupersetOf({"host", "cuda", "virtual", "virtual:h200"}));
  EXPECT_THAT(found.words, testing::Not(Contains("cuda:")));
}

}  // namespace
}  // namespace offprof
