#include "traces/format/run_info_io.h"

#include <fmt/format.h>

#include "traces/format/allocator_state_io.h"
#include "traces/format/calibration_io.h"

namespace offprof {
namespace {

using Json = nlohmann::ordered_json;

/// Reads a count between 1 and `most`, the range that `run` accepts.
int read_count(const JsonValue& json, std::int64_t most) {
  return static_cast<int>(json.as_integer(1, most));
}

Nanoseconds read_time(const JsonValue& json) {
  return json.as_integer(0, kLongestMeasured);
}

/// Reads a rate; 0: not known.
double read_rate(const JsonValue& json) {
  constexpr double kLeast = 1, kMost = 1e18;
  const double rate = json.as_amount();
  if (rate != 0 && (rate < kLeast || rate > kMost))
    json.fail(fmt::format("{} is not 0, nor between {} and {}", rate, kLeast, kMost));
  return rate;
}

/// Reads the time that compute loses for a byte of a copy.
double read_loss(const JsonValue& json) {
  constexpr double kMost = 1;
  const double loss = json.as_amount();
  if (loss > kMost) json.fail(fmt::format("{} is more than {} ns", loss, kMost));
  return loss;
}

LinkDirection read_direction(const JsonValue& json) {
  LinkDirection direction = {read_rate(json.at("bytes_per_second")), read_time(json.at("latency_ns"))};
  if (const auto start = json.find("start_ns")) direction.start_ns = read_time(*start);
  if (const auto loss = json.find("compute_ns_per_byte")) direction.compute_ns_per_byte = read_loss(*loss);
  return direction;
}

Json to_json(const LinkDirection& direction) {
  Json json = {{"bytes_per_second", direction.bytes_per_second}, {"latency_ns", direction.latency_ns}};
  if (direction.start_ns > 0) json["start_ns"] = direction.start_ns;
  if (direction.compute_ns_per_byte > 0) json["compute_ns_per_byte"] = direction.compute_ns_per_byte;
  return json;
}

Link link_from_json(const JsonValue& json) {
  Link link = {read_direction(json.at("d2h")), read_direction(json.at("h2d"))};
  if (const auto shared = json.find("shared")) link.is_shared = shared->as_bool();
  if (const auto both = json.find("bidirectional_bytes_per_second"))
    link.bidirectional_bytes_per_second = read_rate(*both);
  if (const auto disk = json.find("disk")) {
    link.disk = {read_direction(disk->at("write")), read_direction(disk->at("read"))};
    if (const auto compressed = disk->find("compressed")) link.disk.is_compressed = compressed->as_bool();
  }
  if (const auto launch = json.find("launch_ns")) link.launch_ns = read_time(*launch);
  return link;
}

Json to_json(const Link& link) {
  Json json = {{"d2h", to_json(link.d2h)}, {"h2d", to_json(link.h2d)}};
  if (link.launch_ns > 0) json["launch_ns"] = link.launch_ns;
  if (link.is_shared) json["shared"] = true;
  if (link.bidirectional_bytes_per_second > 0)
    json["bidirectional_bytes_per_second"] = link.bidirectional_bytes_per_second;
  if (const DiskLink& disk = link.disk; disk.is_known()) {
    json["disk"] = {{"write", to_json(disk.write)}, {"read", to_json(disk.read)}};
    if (disk.is_compressed) json["disk"]["compressed"] = true;
  }
  return json;
}

}  // namespace

Json to_json(const Environment& environment, RunDetail detail) {
  Json json = {{"device", environment.device},
               {"device_name", environment.device_name},
               {"torch_version", environment.torch_version},
               {"threads", environment.threads}};
  if (detail == RunDetail::kFull) {
    json["link"] = to_json(environment.link);
    if (environment.calibration) json["calibration"] = to_json(*environment.calibration);
    if (environment.device_memory_bytes) json["device_memory_bytes"] = *environment.device_memory_bytes;
  }
  if (environment.times_are_modelled) json["times_are_modelled"] = true;
  if (environment.kernel_times) json["kernel_times"] = *environment.kernel_times;
  if (environment.beside_allocator) json["beside_allocator"] = to_json(*environment.beside_allocator);
  return json;
}

Json to_json(const ModelInfo& model, RunDetail detail) {
  Json json = {{"name", model.name}, {"fingerprint", model.fingerprint}};
  if (detail == RunDetail::kFull) {
    json["parameters"] = model.parameters;
    json["parameter_bytes"] = model.parameter_bytes;
    if (const auto& optimizer = model.optimizer)
      json["optimizer"] = {{"state_bytes", optimizer->states},
                           {"master_weight_bytes", optimizer->master_weights}};
    if (model.held_gradient_bytes > 0) json["held_gradient_bytes"] = model.held_gradient_bytes;
  }
  return json;
}

Json to_json(const RunSettings& settings, RunDetail detail) {
  Json json = {{"inputs", settings.inputs}, {"loss", settings.loss}, {"optimizer", settings.optimizer}};
  if (detail == RunDetail::kFull) {
    json["steps"] = settings.steps;
    json["warmup"] = settings.warmup;
    json["seed"] = settings.seed;
    if (settings.device_memory_bytes) json["device_memory_bytes"] = *settings.device_memory_bytes;
    if (const auto& cap = settings.link_cap)
      json["link_cap"] = {{"d2h", to_json(cap->d2h)}, {"h2d", to_json(cap->h2d)}};
  }
  if (settings.parameters) json["parameters"] = to_json(*settings.parameters);
  if (!settings.checkpointed.empty()) json["checkpoint"] = settings.checkpointed;
  if (settings.slices) json["slices"] = to_json(*settings.slices);
  if (!settings.loaded_from.empty()) json["loaded_from"] = settings.loaded_from;
  return json;
}

Json to_json(const StepSize& size) {
  Json json = Json::object();
  if (size.tokens) json["tokens"] = *size.tokens;
  if (size.flops > 0) json["flops"] = size.flops;
  return json;
}

Environment environment_from_json(const JsonValue& json, RunDetail detail) {
  Environment environment;
  environment.device = json.at("device").as_string();
  environment.device_name = json.at("device_name").as_string();
  environment.torch_version = json.at("torch_version").as_string();
  environment.threads = read_count(json.at("threads"), kMostThreads);
  if (detail == RunDetail::kFull) {
    environment.link = link_from_json(json.at("link"));
    if (const auto calibration = json.find("calibration"))
      environment.calibration = calibration_from_json(*calibration);
    if (const auto memory = json.find("device_memory_bytes"))
      environment.device_memory_bytes = memory->as_integer();
  }
  if (const auto modelled = json.find("times_are_modelled"))
    environment.times_are_modelled = modelled->as_bool();
  if (const auto file = json.find("kernel_times")) environment.kernel_times = file->as_string();
  if (const auto memory = json.find("beside_allocator"))
    environment.beside_allocator = memory_beside_allocator_from_json(*memory);
  return environment;
}

ModelInfo model_from_json(const JsonValue& json, RunDetail detail) {
  ModelInfo model;
  model.name = json.at("name").as_string();
  model.fingerprint = json.at("fingerprint").as_string();
  if (detail == RunDetail::kFull) {
    model.parameters = json.at("parameters").as_integer();
    model.parameter_bytes = json.at("parameter_bytes").as_integer();
    if (const auto optimizer = json.find("optimizer"))
      model.optimizer = {optimizer->at("state_bytes").as_integer(),
                         optimizer->at("master_weight_bytes").as_integer()};
    if (const auto held = json.find("held_gradient_bytes")) model.held_gradient_bytes = held->as_integer();
  }
  return model;
}

StepSize step_size_from_json(const JsonValue& json) {
  StepSize size;
  if (const auto tokens = json.find("tokens")) size.tokens = tokens->as_integer();
  if (const auto flops = json.find("flops")) size.flops = flops->as_amount();
  return size;
}

RunSettings settings_from_json(const JsonValue& json, RunDetail detail) {
  RunSettings settings;
  settings.inputs = json.at("inputs").as_strings();
  settings.loss = json.at("loss").as_string();
  settings.optimizer = json.at("optimizer").as_string();
  if (detail == RunDetail::kFull) {
    settings.steps = read_count(json.at("steps"), kMostSteps);
    settings.warmup = read_count(json.at("warmup"), kMostSteps);
    settings.seed = json.at("seed").as_unsigned();
    if (const auto memory = json.find("device_memory_bytes"))
      settings.device_memory_bytes = memory->as_integer();
    if (const auto cap = json.find("link_cap"))
      settings.link_cap = {read_direction(cap->at("d2h")), read_direction(cap->at("h2d"))};
  }
  if (const auto parameters = json.find("parameters"))
    settings.parameters = parameter_settings_from_json(*parameters);
  if (const auto checkpointed = json.find("checkpoint")) settings.checkpointed = checkpointed->as_strings();
  if (const auto slices = json.find("slices")) settings.slices = slice_settings_from_json(*slices);
  if (const auto file = json.find("loaded_from")) settings.loaded_from = file->as_string();
  return settings;
}

}  // namespace offprof
