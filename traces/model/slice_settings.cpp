#include "traces/model/slice_settings.h"

#include <fmt/format.h>

namespace offprof {
namespace {

std::string plural(std::int64_t count, const char* what, const char* ending) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : ending);
}

}  // namespace

std::string describe(const std::optional<SliceSettings>& slices) {
  if (!slices) return "none";
  const std::string count =
      slices->count ? plural(*slices->count, "slice", "s") : "automatic number of slices";
  return count + ", " + plural(slices->microbatches, "micro-batch", "es");
}

nlohmann::ordered_json to_json(const SliceSettings& slices) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (slices.count) json["count"] = *slices.count;
  json["microbatches"] = slices.microbatches;
  return json;
}

SliceSettings slice_settings_from_json(const JsonValue& json) {
  SliceSettings slices;
  if (const auto count = json.find("count")) slices.count = count->as_integer(1, kMostSlices);
  slices.microbatches = json.at("microbatches").as_integer(1, kMostSlices);
  return slices;
}

}  // namespace offprof
