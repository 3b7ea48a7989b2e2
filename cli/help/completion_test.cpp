#include "cli/help/completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/program/command_table.h"
#include "tests/support/cli_run.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;

/// Output of the program for a command line whose last word is completed.
struct Answer {
  std::string shell_names;
  std::vector<std::string> words;
};

Answer completed(std::vector<std::string> words) {
  words.insert(words.begin(), kCompleteWord);
  std::istringstream lines(run_words(words).out);
  Answer answer;
  std::getline(lines, answer.shell_names);
  for (std::string line; std::getline(lines, line);) answer.words.push_back(line.substr(0, line.find(' ')));
  return answer;
}

TEST(Completion, KnowsEveryCommand) {
  const Answer answer = completed({""});
  for (const CommandEntry& entry : command_table()) EXPECT_THAT(answer.words, Contains(entry.name));
}

TEST(Completion, KnowsTheOptionsOfACommand) {
  EXPECT_THAT(completed({"gate", "--up"}).words, ElementsAre("--update"));
}

TEST(Completion, DescribesOptions) {
  EXPECT_EQ(run_words({kCompleteWord, "gate", "--up"}).out,
            "none\n--update Write the metrics of the trace to the baseline\n");
}

TEST(Completion, OmitsOptionsThatAreGiven) {
  EXPECT_THAT(completed({"gate", "--update", "--"}).words, Not(Contains("--update")));
}

TEST(Completion, OffersRepeatableOptionsAgain) {
  EXPECT_THAT(completed({"run", "--input", "bool[1]", "--inp"}).words, ElementsAre("--input"));
}

TEST(Completion, CompletesEnumeratedValues) {
  EXPECT_THAT(completed({"view", "--format", ""}).words, ElementsAre("text", "json"));
  EXPECT_THAT(completed({"view", "--format=j"}).words, ElementsAre("--format=json"));
}

TEST(Completion, CompletesProfilesOfDevices) {
  EXPECT_THAT(completed({"run", "--device", "virtual:h"}).words,
              ElementsAre("virtual:h200", "virtual:h100-80gb", "virtual:h100-pcie"));
}

TEST(Completion, CompletesPoliciesAndFiles) {
  const Answer answer = completed({"simulate", "t.json", "--policy", ""});
  EXPECT_THAT(answer.words, IsSupersetOf({"keep", "offload", "trl"}));
  EXPECT_EQ(answer.shell_names, "files");
}

TEST(Completion, CompletesFilesAndFolders) {
  EXPECT_EQ(completed({"view", "t"}).shell_names, "files");
  EXPECT_EQ(completed({"view", "-t", ""}).shell_names, "files");
  EXPECT_EQ(completed({"run", "--disk", ""}).shell_names, "folders");
}

TEST(Completion, HasNothingForNumbers) {
  const Answer answer = completed({"run", "--steps", ""});
  EXPECT_THAT(answer.words, IsEmpty());
  EXPECT_EQ(answer.shell_names, "none");
}

TEST(Completion, CompletesActionsAndTheirOptions) {
  EXPECT_THAT(completed({"zoo", ""}).words, ElementsAre("list", "make"));
  EXPECT_THAT(completed({"zoo", "make", "trans"}).words, ElementsAre("transformer"));
  EXPECT_THAT(completed({"zoo", "make", "--met"}).words, ElementsAre("--meta"));
}

TEST(Completion, CompletesTheCommandOfExec) {
  EXPECT_EQ(completed({"exec", "--", "pyth"}).shell_names, "programs");
  EXPECT_EQ(completed({"exec", "--", "python", "--x"}).shell_names, "files");
}

TEST(Completion, OffersOptionsWhereNoArgumentCanFollow) {
  EXPECT_THAT(completed({"view", "t.json", ""}).words, Contains("--saved"));
}

TEST(Completion, CompletesTheNamesOfCommands) {
  EXPECT_THAT(completed({"help", "sim"}).words, ElementsAre("simulate"));
  EXPECT_THAT(completed({"man", "sim"}).words, ElementsAre("simulate"));
}

TEST(Completion, IgnoresUnknownWords) {
  EXPECT_THAT(completed({"nonesuch", "--nonesuch", ""}).words, IsEmpty());
}

}  // namespace
}  // namespace offprof
