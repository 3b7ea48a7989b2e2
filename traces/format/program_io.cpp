#include "traces/format/program_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "traces/format/allocator_state_io.h"
#include "traces/format/program_columns.h"
#include "traces/format/saved_tensors_io.h"
#include "traces/format/work_io.h"

namespace offprof {
namespace {

/// Letters of StorageRole and EventKind, in the order of their values.
constexpr std::string_view kRoleLetters = "APBIRG";
static_assert(kRoleLetters.size() == static_cast<std::size_t>(StorageRole::kGathered) + 1);
constexpr std::string_view kEventLetters = "H()AFPURNLBIWOE";
static_assert(kEventLetters.size() == static_cast<std::size_t>(EventKind::kFreeRequested) + 1);

void append_free_points(std::string& out, const std::vector<FreePoint>& free_points) {
  out += "\"free_points\": {\"storages\": ";
  append_column(out, free_points, [](const auto& freed) { return freed.storage; });
  out += ", \"points\": ";
  append_column(out, free_points, [](const auto& freed) { return freed.point; });
  out += '}';
}

void append_renewals(std::string& out, const std::vector<Renewal>& renewals) {
  out += "\"renewals\": {\"old_storages\": ";
  append_column(out, renewals, [](const auto& renewal) { return renewal.old_storage; });
  out += ", \"new_storages\": ";
  append_column(out, renewals, [](const auto& renewal) { return renewal.new_storage; });
  if (!std::ranges::all_of(renewals, [](const Renewal& renewal) { return renewal.let_go < 0; })) {
    out += ", \"let_go\": ";
    append_column(out, renewals, [](const auto& renewal) { return renewal.let_go; });
  }
  out += '}';
}

void append_storages(std::string& out, const std::vector<ProgramStorage>& storages) {
  append(out, "\"storages\": {{\"roles\": \"{}\", \"bytes\": ",
         letters(storages, kRoleLetters, [](const auto& storage) { return storage.role; }));
  append_column(out, storages, [](const auto& storage) { return storage.bytes; });
  const auto is_on_compute = [](const ProgramStorage& storage) { return storage.stream == kComputeStream; };
  if (!std::ranges::all_of(storages, is_on_compute)) {
    out += ", \"streams\": ";
    append_column(out, storages, [](const auto& storage) { return storage.stream; });
  }
  out += '}';
}

/// A column of names of the saved tensors, beside the table `saved`: it may be absent.
struct NameColumn {
  const char* key;
  std::int32_t SavedTensor::*name;
};
constexpr std::array kNameColumns = {NameColumn{"modules", &SavedTensor::module},
                                     NameColumn{"lines", &SavedTensor::line}};

/// Appends a column unless none of its names is known.
void append_names(std::string& out, const std::vector<SavedTensor>& saved, const NameColumn& column) {
  const auto is_unknown = [&](const SavedTensor& tensor) { return tensor.*column.name < 0; };
  if (std::ranges::all_of(saved, is_unknown)) return;
  append(out, "\"{}\": ", column.key);
  append_column(out, saved, [&](const SavedTensor& tensor) { return tensor.*column.name; });
  out += ",\n";
}

void append_events(std::string& out, const StepProgram& program) {
  const std::vector<Event>& events = program.events;
  append(out, "\"events\": {{\"kinds\": \"{}\",\n\"ids\": ",
         letters(events, kEventLetters, [](const Event& event) { return event.kind; }));
  append_column(out, events, [](const Event& event) { return event.id; });
  out += ",\n\"compute_ns\": ";
  append_column(out, events, [](const Event& event) { return event.compute_ns; });
  if (!program.compute_spread_ns.empty()) {
    out += ",\n\"compute_spread_ns\": ";
    append_column(out, program.compute_spread_ns, [](Nanoseconds spread) { return spread; });
  }
  out += '}';
}

void append_staging(std::string& out, const std::vector<Staging>& staging) {
  out += "\"staging\": {\"tensors\": ";
  append_column(out, staging, [](const Staging& one) { return one.tensor; });
  out += ", \"host_ns\": ";
  append_column(out, staging, [](const Staging& one) { return one.host_ns; });
  out += ", \"stream_ns\": ";
  append_column(out, staging, [](const Staging& one) { return one.stream_ns; });
  out += '}';
}

void append_families(std::string& out, const std::vector<FamilyTime>& families) {
  out += "\"families\": {\"names\": ";
  append_column(out, families, [](const FamilyTime& one) { return quoted(one.family); });
  out += ", \"busy_ns\": ";
  append_column(out, families, [](const FamilyTime& one) { return one.busy_ns; });
  out += '}';
}

std::vector<ProgramStorage> read_storages(const JsonValue& json) {
  const auto roles = read_letters<StorageRole>(json.at("roles"), kRoleLetters);
  const JsonValue bytes = json.at("bytes");
  require_length(bytes, roles.size());
  std::vector<ProgramStorage> storages(roles.size());
  bytes.each_integer(0, kMaxInteger, [&](std::size_t i, std::int64_t value) {
    storages[i] = {value, roles[i]};
  });
  bytes.release();
  if (const auto streams = json.find("streams")) {
    require_length(*streams, storages.size());
    streams->each_integer(0, kMostStreams - 1, [&](std::size_t i, std::int64_t stream) {
      storages[i].stream = static_cast<std::int32_t>(stream);
    });
    streams->release();
  }
  return storages;
}

std::vector<Event> read_events(const JsonValue& json) {
  const auto kinds = read_letters<EventKind>(json.at("kinds"), kEventLetters);
  const JsonValue ids = json.at("ids");
  const JsonValue times = json.at("compute_ns");
  require_length(ids, kinds.size());
  require_length(times, kinds.size());
  std::vector<Event> events(kinds.size());
  ids.each_integer(0, kMaxIndex, [&](std::size_t i, std::int64_t id) {
    events[i] = {kinds[i], static_cast<std::int32_t>(id), 0};
  });
  ids.release();
  times.each_integer(0, kMaxInteger, [&](std::size_t i, std::int64_t time) { events[i].compute_ns = time; });
  times.release();
  return events;
}

std::vector<Nanoseconds> read_spread(const JsonValue& json, std::size_t events) {
  require_length(json, events);
  std::vector<Nanoseconds> spread(events);
  json.each_integer(0, kMaxInteger, [&](std::size_t i, std::int64_t time) { spread[i] = time; });
  json.release();
  return spread;
}

void read_names(const JsonValue& json, std::vector<SavedTensor>& saved, const NameColumn& column) {
  require_length(json, saved.size());
  json.each_integer(-1, kMaxIndex, [&](std::size_t i, std::int64_t name) {
    saved[i].*column.name = static_cast<std::int32_t>(name);
  });
  json.release();
}

std::vector<Staging> read_staging(const JsonValue& json) {
  const auto tensors = json.at("tensors").as_integers(0, kMaxIndex);
  const JsonValue host_column = json.at("host_ns"), stream_column = json.at("stream_ns");
  require_length(host_column, tensors.size());
  require_length(stream_column, tensors.size());
  const auto host = host_column.as_integers(), stream = stream_column.as_integers();
  std::vector<Staging> staging;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    staging.push_back({static_cast<std::int32_t>(tensors[i]), host[i], stream[i]});
  return staging;
}

/// Reads two columns of indices.
std::vector<std::pair<std::int32_t, std::int32_t>> read_index_pairs(const JsonValue& json,
                                                                    const char* first_key,
                                                                    const char* second_key) {
  const auto first = json.at(first_key).as_integers(0, kMaxIndex);
  const JsonValue column = json.at(second_key);
  require_length(column, first.size());
  const auto second = column.as_integers(0, kMaxIndex);
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t i = 0; i < first.size(); ++i)
    pairs.emplace_back(static_cast<std::int32_t>(first[i]), static_cast<std::int32_t>(second[i]));
  return pairs;
}

std::vector<FreePoint> read_free_points(const JsonValue& json) {
  std::vector<FreePoint> free_points;
  for (const auto& [storage, point] : read_index_pairs(json, "storages", "points"))
    free_points.push_back({storage, point});
  return free_points;
}

std::vector<Renewal> read_renewals(const JsonValue& json) {
  std::vector<Renewal> renewals;
  for (const auto& [old_storage, new_storage] : read_index_pairs(json, "old_storages", "new_storages"))
    renewals.push_back({old_storage, new_storage});
  if (const auto let_go = json.find("let_go")) {
    require_length(*let_go, renewals.size());
    const auto events = let_go->as_integers(-1, kMaxIndex);
    for (std::size_t i = 0; i < renewals.size(); ++i)
      renewals[i].let_go = static_cast<std::int32_t>(events[i]);
  }
  return renewals;
}

std::vector<FamilyTime> read_families(const JsonValue& json) {
  const std::vector<std::string> names = json.at("names").as_strings();
  const JsonValue column = json.at("busy_ns");
  require_length(column, names.size());
  const auto times = column.as_integers();
  std::vector<FamilyTime> families;
  for (std::size_t i = 0; i < names.size(); ++i) families.push_back({names[i], times[i]});
  return families;
}

}  // namespace

void append_program(std::string& out, const StepProgram& program) {
  append(out, "{{\"resident_bytes\": {},\n\"names\": ", program.resident_bytes);
  append_column(out, program.names, quoted);
  out += ",\n";
  append_storages(out, program.storages);
  out += ",\n";
  append_saved_tensors(out, program.saved);
  out += ",\n";
  for (const NameColumn& column : kNameColumns) append_names(out, program.saved, column);
  append_events(out, program);
  if (!program.work.empty()) {
    out += ",\n";
    out += "\"work\": ";
    append_work(out, program.work);
  }
  if (!program.stream_commands.empty()) {
    out += ",\n\"stream_commands\": ";
    append_stream_commands(out, program.stream_commands);
  }
  if (!program.free_points.empty()) {
    out += ",\n";
    append_free_points(out, program.free_points);
  }
  if (!program.renewals.empty()) {
    out += ",\n";
    append_renewals(out, program.renewals);
  }
  if (!program.families.empty()) {
    out += ",\n";
    append_families(out, program.families);
  }
  if (!program.staging.empty()) {
    out += ",\n";
    append_staging(out, program.staging);
  }
  if (program.allocator) {
    out += ",\n\"allocator\": ";
    append_allocator_state(out, *program.allocator);
  }
  out += '}';
}

StepProgram program_from_json(const JsonValue& json) {
  StepProgram program;
  program.resident_bytes = json.at("resident_bytes").as_integer();
  program.names = json.at("names").as_strings();
  program.storages = read_storages(json.at("storages"));
  program.events = read_events(json.at("events"));  // the largest part first, while little else is in memory
  if (const auto spread = json.at("events").find("compute_spread_ns"))
    program.compute_spread_ns = read_spread(*spread, program.events.size());
  program.saved = saved_tensors_from_json(json.at("saved"));
  for (const NameColumn& column : kNameColumns)
    if (const auto names = json.find(column.key)) read_names(*names, program.saved, column);
  if (const auto work = json.find("work")) program.work = read_work(*work, program.events.size());
  if (const auto commands = json.find("stream_commands"))
    program.stream_commands = read_stream_commands(*commands);
  if (const auto points = json.find("free_points")) program.free_points = read_free_points(*points);
  if (const auto renewals = json.find("renewals")) program.renewals = read_renewals(*renewals);
  if (const auto families = json.find("families")) program.families = read_families(*families);
  if (const auto staging = json.find("staging")) program.staging = read_staging(*staging);
  if (const auto allocator = json.find("allocator"))
    program.allocator = allocator_state_from_json(*allocator);
  check_program(program, json.where());
  return program;
}

}  // namespace offprof
