#include "traces/model/shard_settings.h"

#include <fmt/format.h>

namespace offprof {
namespace {

std::string plural(std::int64_t count, const char* what, const char* ending) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

}  // namespace

std::string describe(const std::optional<ShardSettings>& shards) {
  if (!shards) return "none";
  const std::string count = shards->count ? plural(*shards->count, "shard", "s") : "as many shards as suit";
  return count + ", " + plural(shards->microbatches, "micro-batch", "es");
}

nlohmann::ordered_json to_json(const ShardSettings& shards) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (shards.count) json["count"] = *shards.count;
  json["microbatches"] = shards.microbatches;
  return json;
}

ShardSettings shard_settings_from_json(const JsonValue& json) {
  ShardSettings shards;
  if (const auto count = json.find("count")) shards.count = count->as_integer(1, kMostShards);
  shards.microbatches = json.at("microbatches").as_integer(1, kMostShards);
  return shards;
}

}  // namespace offprof
