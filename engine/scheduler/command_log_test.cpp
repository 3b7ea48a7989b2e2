#include "engine/scheduler/command_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace offprof {
namespace {

TEST(CommandLog, IsEmptyWithoutCommands) {
  EXPECT_EQ(format_command_log({}), "");
}

TEST(CommandLog, WritesOneObjectPerLine) {
  const std::vector<Command> commands = {{CommandKind::kCopyOut, 12, 3, 65536},
                                         {CommandKind::kDrop, 12, 3, 65536}};
  EXPECT_EQ(format_command_log(commands),
            "{\"command\":\"copy_out\",\"tensor\":12,\"copy\":3,\"bytes\":65536}\n"
            "{\"command\":\"drop\",\"tensor\":12,\"copy\":3,\"bytes\":65536}\n");
}

TEST(CommandLog, OmitsTheCopyOfACommandThatHasNone) {
  const std::vector<Command> commands = {{CommandKind::kKeep, 0, -1, 16}};
  EXPECT_EQ(format_command_log(commands), "{\"command\":\"keep\",\"tensor\":0,\"bytes\":16}\n");
}

TEST(CommandLog, IsJson) {
  const std::vector<Command> commands = {{CommandKind::kFreeHost, 1, 0, 8}};
  const auto json = nlohmann::json::parse(format_command_log(commands));
  EXPECT_EQ(json.at("command"), "free_host");
  EXPECT_EQ(json.at("copy"), 0);
}

TEST(CommandLog, HasANameForEveryCommand) {
  std::set<std::string_view> names;
  for (int kind = 0; kind <= static_cast<int>(CommandKind::kFreeHost); ++kind)
    names.insert(to_string(static_cast<CommandKind>(kind)));
  EXPECT_EQ(names, (std::set<std::string_view>{"keep", "release_kept", "copy_out", "wait_out", "drop",
                                               "copy_in", "wait_in", "free_host"}));
}

}  // namespace
}  // namespace offprof
