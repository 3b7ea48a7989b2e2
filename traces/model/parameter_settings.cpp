#include "traces/model/parameter_settings.h"

#include <fmt/format.h>

namespace offprof {

std::string describe(const std::optional<ParameterSettings>& parameters) {
  if (!parameters) return "on the device";
  std::string text = "on the " + parameters->place;
  if (parameters->window_bytes)
    text += fmt::format(", at most {} on the device", format_bytes(*parameters->window_bytes));
  return text;
}

nlohmann::ordered_json to_json(const ParameterSettings& parameters) {
  nlohmann::ordered_json json = {{"place", parameters.place}};
  if (parameters.window_bytes) json["window_bytes"] = *parameters.window_bytes;
  return json;
}

ParameterSettings parameter_settings_from_json(const JsonValue& json) {
  ParameterSettings parameters{json.at("place").as_string()};
  if (parameters.place != "host" && parameters.place != "disk")
    json.at("place").fail("parameters can be on the host or on the disk, not on '" + parameters.place + "'");
  if (const auto window = json.find("window_bytes")) parameters.window_bytes = window->as_integer();
  return parameters;
}

}  // namespace offprof
