#include "engine/scheduler/command_log.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace offprof {
namespace {

TEST(CommandLog, IsEmptyWithoutCommands) {
  EXPECT_EQ(format_command_log({}), "");
}

TEST(CommandLog, WritesOneObjectPerLine) {
  const std::vector<Command> commands = {CopyOut{{12, 3, 65536}}, Drop{{12, 3, 65536}}};
  EXPECT_EQ(format_command_log(commands),
            "{\"command\":\"copy_out\",\"tensor\":12,\"copy\":3,\"bytes\":65536}\n"
            "{\"command\":\"drop\",\"tensor\":12,\"copy\":3,\"bytes\":65536}\n");
}

TEST(CommandLog, OmitsTheCopyOfACommandThatHasNone) {
  const std::vector<Command> commands = {Keep{{0, 16}}};
  EXPECT_EQ(format_command_log(commands), "{\"command\":\"keep\",\"tensor\":0,\"bytes\":16}\n");
}

TEST(CommandLog, IsJson) {
  const std::vector<Command> commands = {FreeHost{{1, 0, 8}}};
  const auto json = nlohmann::json::parse(format_command_log(commands));
  EXPECT_EQ(json.at("command"), "free_host");
  EXPECT_EQ(json.at("copy"), 0);
}

template <std::size_t... Indices>
std::vector<std::string_view> names_of_all(std::index_sequence<Indices...>) {
  return {name_of(std::variant_alternative_t<Indices, Command>{})...};
}

TEST(CommandLog, HasANameForEveryCommand) {
  const auto names = names_of_all(std::make_index_sequence<std::variant_size_v<Command>>());
  EXPECT_EQ(names, (std::vector<std::string_view>{
                       "keep", "release_kept", "copy_out", "wait_out", "drop", "copy_in", "wait_in",
                       "free_host", "encode", "decode", "drop_for_recompute", "recompute", "take_disk",
                       "write_disk", "wait_write", "read_disk", "wait_read", "free_disk"}));
}

}  // namespace
}  // namespace offprof
