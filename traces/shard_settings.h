#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "traces/json_access.h"

namespace offprof {

/// More shards or micro-batches than any model has use for.
inline constexpr std::int64_t kMostShards = 100'000;

/// `--shards`: the model runs in so many parts, one after another, in forward without saving anything but
/// what goes from part to part, and again in backward.
struct ShardSettings {
  std::optional<std::int64_t> count{};  ///< nullopt: the run chooses
  std::int64_t microbatches = 1;        ///< into which the inputs are cut; each part runs all of them in turn

  bool operator==(const ShardSettings&) const = default;
};

/// `none`, or `4 shards, 2 micro-batches`.
std::string describe(const std::optional<ShardSettings>& shards);

nlohmann::ordered_json to_json(const ShardSettings& shards);
/// Throws Error (input).
ShardSettings shard_settings_from_json(const JsonValue& json);

}  // namespace offprof
