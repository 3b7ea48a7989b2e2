#include "traces/model/weight_settings.h"

#include <fmt/format.h>

namespace offprof {

std::string describe(const std::optional<WeightSettings>& weights) {
  if (!weights) return "on the device";
  std::string text = "on the " + weights->place;
  if (weights->window_bytes)
    text += fmt::format(", at most {} of them on the device", format_bytes(*weights->window_bytes));
  return text;
}

nlohmann::ordered_json to_json(const WeightSettings& weights) {
  nlohmann::ordered_json json = {{"place", weights.place}};
  if (weights.window_bytes) json["window_bytes"] = *weights.window_bytes;
  return json;
}

WeightSettings weight_settings_from_json(const JsonValue& json) {
  WeightSettings weights{json.at("place").as_string()};
  if (weights.place != "host" && weights.place != "disk")
    json.at("place").fail("weights wait on the host or on the disk, not on '" + weights.place + "'");
  if (const auto window = json.find("window_bytes")) weights.window_bytes = window->as_integer();
  return weights;
}

}  // namespace offprof
