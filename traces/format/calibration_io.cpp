#include "traces/format/calibration_io.h"

namespace offprof {
namespace {

using Json = nlohmann::ordered_json;

/// Upper limit for the bytes of a copy.
constexpr Bytes kMostBytes = Bytes{1} << 50;

Json to_json(const std::vector<CopyTiming>& copies) {
  Json json = Json::array();
  for (const CopyTiming& copy : copies) {
    json.push_back({{"bytes", copy.bytes}});
    json.back().update(to_json(copy.duration));
  }
  return json;
}

std::vector<CopyTiming> copies_from_json(const JsonValue& json) {
  std::vector<CopyTiming> copies;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue copy = json.element(i);
    const Bytes least = copies.empty() ? 0 : copies.back().bytes + 1;
    copies.push_back({copy.at("bytes").as_integer(least, kMostBytes), measured_from_json(copy)});
  }
  return copies;
}

Json to_json(const std::vector<StandstillTiming>& standstills) {
  Json json = Json::array();
  for (const StandstillTiming& standstill : standstills) {
    json.push_back({{"stood_ns", standstill.stood_ns}});
    json.back().update(to_json(standstill.lost));
  }
  return json;
}

std::vector<StandstillTiming> standstills_from_json(const JsonValue& json) {
  std::vector<StandstillTiming> standstills;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue standstill = json.element(i);
    const Nanoseconds least = standstills.empty() ? 1 : standstills.back().stood_ns + 1;
    standstills.push_back(
        {standstill.at("stood_ns").as_integer(least, kLongestMeasured), measured_from_json(standstill)});
  }
  return standstills;
}

Json to_json(const std::vector<PhaseTiming>& phases) {
  Json json = Json::array();
  for (const PhaseTiming& phase : phases) {
    json.push_back({{"phase", phase.phase}});
    json.back().update(to_json(phase.duration));
  }
  return json;
}

std::vector<PhaseTiming> phases_from_json(const JsonValue& json) {
  std::vector<PhaseTiming> phases;
  for (std::size_t i = 0; i < json.size(); ++i)
    phases.push_back({json.element(i).at("phase").as_string(), measured_from_json(json.element(i))});
  return phases;
}

}  // namespace

Json to_json(const MeasuredQuartiles& measured) {
  return {{"median_ns", measured.median_ns}, {"low_ns", measured.low_ns}, {"high_ns", measured.high_ns}};
}

MeasuredQuartiles measured_from_json(const JsonValue& json) {
  const Nanoseconds low = json.at("low_ns").as_integer(0, kLongestMeasured);
  const Nanoseconds median = json.at("median_ns").as_integer(low, kLongestMeasured);
  return {median, low, json.at("high_ns").as_integer(median, kLongestMeasured)};
}

Json to_json(const Calibration& calibration) {
  Json json = {{"d2h", to_json(calibration.d2h)},
               {"h2d", to_json(calibration.h2d)},
               {"copy_out_per_mib", to_json(calibration.copy_out_per_mib)},
               {"copy_in_per_mib", to_json(calibration.copy_in_per_mib)},
               {"start", to_json(calibration.start)},
               {"command", to_json(calibration.command)},
               {"event", to_json(calibration.event)},
               {"hook", to_json(calibration.hook)},
               {"standstills", to_json(calibration.standstills)},
               {"slowdown_per_mib", to_json(calibration.slowdown_per_mib)},
               {"reload_per_mib", to_json(calibration.reload_per_mib)},
               {"step", to_json(calibration.step)},
               {"core_to_core", to_json(calibration.core_to_core)}};
  if (!calibration.phases.empty()) json["phases"] = to_json(calibration.phases);
  if (!calibration.disk_write.empty()) json["disk_write"] = to_json(calibration.disk_write);
  if (!calibration.disk_read.empty()) json["disk_read"] = to_json(calibration.disk_read);
  return json;
}

Calibration calibration_from_json(const JsonValue& json) {
  Calibration calibration;
  calibration.d2h = copies_from_json(json.at("d2h"));
  calibration.h2d = copies_from_json(json.at("h2d"));
  if (const auto write = json.find("disk_write")) calibration.disk_write = copies_from_json(*write);
  if (const auto read = json.find("disk_read")) calibration.disk_read = copies_from_json(*read);
  if (const auto out = json.find("copy_out_per_mib")) calibration.copy_out_per_mib = measured_from_json(*out);
  if (const auto in = json.find("copy_in_per_mib")) calibration.copy_in_per_mib = measured_from_json(*in);
  calibration.start = measured_from_json(json.at("start"));
  calibration.command = measured_from_json(json.at("command"));
  calibration.event = measured_from_json(json.at("event"));
  calibration.hook = measured_from_json(json.at("hook"));
  calibration.standstills = standstills_from_json(json.at("standstills"));
  calibration.slowdown_per_mib = measured_from_json(json.at("slowdown_per_mib"));
  calibration.reload_per_mib = measured_from_json(json.at("reload_per_mib"));
  calibration.step = measured_from_json(json.at("step"));
  if (const auto phases = json.find("phases")) calibration.phases = phases_from_json(*phases);
  if (const auto cores = json.find("core_to_core")) calibration.core_to_core = measured_from_json(*cores);
  return calibration;
}

}  // namespace offprof
