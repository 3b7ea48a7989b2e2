#include "traces/format/work_io.h"

#include <algorithm>
#include <string_view>

#include "traces/format/program_columns.h"
#include "traces/model/allocator_state.h"

namespace offprof {
namespace {

/// Letters of StreamCommand::Kind, in the order of its values.
constexpr std::string_view kCommandLetters = "KNOIRWHD";
static_assert(kCommandLetters.size() == static_cast<std::size_t>(StreamCommand::Kind::kDeviceWait) + 1);

/// Appends the columns of work; `work_of` returns that of an element.
template <typename Element, typename Project>
void append_columns(std::string& out, const std::vector<Element>& elements, const Project& work_of) {
  const auto column = [&](std::string_view name, Nanoseconds Work::*field) {
    append(out, "\"{}\": ", name);
    append_column(out, elements, [&](const Element& element) { return work_of(element).*field; });
  };
  column("host_ns", &Work::host_ns);
  out += ",\n";
  column("stream_ns", &Work::stream_ns);
  out += ",\n";
  column("path_ns", &Work::path_ns);
  out += ",\n";
  column("busy_ns", &Work::busy_ns);
  if (std::ranges::none_of(elements, [&](const Element& element) { return work_of(element).waits(); }))
    return;
  out += ",\n\"wait_ns\": ";
  append_column(out, elements, [&](const Element& element) {
    return work_of(element).waits() ? work_of(element).wait_ns : -1;
  });
}

}  // namespace

void append_work(std::string& out, const std::vector<Work>& work) {
  out += '{';
  append_columns(out, work, [](const Work& part) { return part; });
  out += '}';
}

void append_stream_commands(std::string& out, const std::vector<StreamCommand>& commands) {
  append(out, "{{\"kinds\": \"{}\",\n",
         letters(commands, kCommandLetters, [](const StreamCommand& command) { return command.kind; }));
  const auto column = [&](std::string_view name, auto field) {
    append(out, "\"{}\": ", name);
    append_column(out, commands, [&](const StreamCommand& command) { return command.*field; });
    out += ",\n";
  };
  column("events", &StreamCommand::event);
  column("streams", &StreamCommand::stream);
  column("points", &StreamCommand::point);
  column("duration_ns", &StreamCommand::duration_ns);
  column("bytes", &StreamCommand::bytes);
  append_columns(out, commands, [](const StreamCommand& command) { return command.before; });
  out += '}';
}

std::vector<Work> read_work(const JsonValue& json, std::size_t events) {
  std::vector<Work> work(events);
  const auto read = [&](const char* column, Nanoseconds Work::*field, Nanoseconds least) {
    const JsonValue values = json.at(column);
    require_length(values, events);
    values.each_integer(least, kMaxInteger, [&](std::size_t i, std::int64_t time) {
      work[i].*field = time < 0 ? Work::kNoWait : time;
    });
    values.release();
  };
  read("host_ns", &Work::host_ns, 0);
  read("stream_ns", &Work::stream_ns, 0);
  read("path_ns", &Work::path_ns, 0);
  if (json.find("busy_ns")) read("busy_ns", &Work::busy_ns, 0);
  if (json.find("wait_ns")) read("wait_ns", &Work::wait_ns, -1);
  return work;
}

std::vector<StreamCommand> read_stream_commands(const JsonValue& json) {
  const auto kinds = read_letters<StreamCommand::Kind>(json.at("kinds"), kCommandLetters);
  const std::vector<Work> before = read_work(json, kinds.size());
  std::vector<StreamCommand> commands(kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    commands[i].kind = kinds[i];
    commands[i].before = before[i];
  }
  const auto read = [&](const char* name, std::int64_t least, std::int64_t most, const auto& take) {
    const JsonValue column = json.at(name);
    require_length(column, kinds.size());
    column.each_integer(least, most, [&](std::size_t i, std::int64_t value) { take(commands[i], value); });
    column.release();
  };
  const auto index = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  read("events", 0, kMaxIndex, [&](StreamCommand& command, auto value) { command.event = index(value); });
  read("streams", 0, kMostStreams - 1,
       [&](StreamCommand& command, auto value) { command.stream = index(value); });
  read("points", -1, kMaxIndex, [&](StreamCommand& command, auto value) { command.point = index(value); });
  read("duration_ns", 0, kMaxInteger,
       [](StreamCommand& command, std::int64_t value) { command.duration_ns = value; });
  read("bytes", 0, kMaxInteger, [](StreamCommand& command, std::int64_t value) { command.bytes = value; });
  return commands;
}

}  // namespace offprof
