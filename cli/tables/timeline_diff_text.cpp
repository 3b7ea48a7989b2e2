#include "cli/tables/timeline_diff_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const TimePair& time) {
  return {{"base_ns", time.base}, {"new_ns", time.now}, {"difference_ns", time.difference()}};
}

Json to_json(const CountPair& count) {
  return {{"base", count.base}, {"new", count.now}};
}

Json null_unless_named(const std::string& name) {
  return name.empty() ? Json(nullptr) : Json(name);
}

Json null_unless(const std::optional<Nanoseconds>& time) {
  return time ? Json(*time) : Json(nullptr);
}

Json to_json(const PhaseDifference& phase) {
  return {{"phase", null_unless_named(phase.name)}, {"time", to_json(phase.time)}};
}

Json to_json(const OpTimeDifference& op) {
  return {{"op", op.op}, {"count", to_json(op.count)}, {"time", to_json(op.time)}};
}

Json to_json(const WaitDifference& wait) {
  return {{"wait", wait.name},
          {"tensor", wait.tensor < 0 ? Json(nullptr) : Json(wait.tensor)},
          {"base_reason", null_unless_named(wait.base_reason)},
          {"new_reason", null_unless_named(wait.now_reason)},
          {"count", to_json(wait.count)},
          {"time", to_json(wait.time)}};
}

Json to_json(const LaunchDifference& waits) {
  return {{"phase", null_unless_named(waits.phase)},
          {"count", to_json(waits.count)},
          {"time", to_json(waits.time)}};
}

const char* direction_key(Track track) {
  switch (track) {
    case Track::kD2h:
      return "d2h";
    case Track::kDiskWrite:
      return "disk_write";
    case Track::kDiskRead:
      return "disk_read";
    default:
      return "h2d";
  }
}

const char* direction_text(Track track) {
  switch (track) {
    case Track::kD2h:
      return "to the host";
    case Track::kDiskWrite:
      return "to the disk";
    case Track::kDiskRead:
      return "from the disk";
    default:
      return "to the device";
  }
}

Json to_json(const CopyDifference& copies) {
  return {{"direction", direction_key(copies.track)},
          {"count", to_json(copies.count)},
          {"bytes", to_json(copies.bytes)},
          {"busy", to_json(copies.busy)}};
}

Json to_json(const PlaceDifference& place) {
  return {{"phase", null_unless_named(place.phase)},
          {"op", place.op},
          {"occurrence", place.occurrence},
          {"base_at_ns", null_unless(place.base_at)},
          {"new_at_ns", null_unless(place.now_at)},
          {"time", to_json(place.time)},
          {"waits", to_json(place.waits)}};
}

template <typename Element>
Json list_to_json(const std::vector<Element>& elements) {
  Json list = Json::array();
  for (const Element& element : elements) list.push_back(to_json(element));
  return list;
}

std::string time_difference_text(Nanoseconds difference) {
  return difference_text(MetricUnit::kNanoseconds, static_cast<double>(difference));
}

/// Appends cells for base, new, and difference.
void append_times(std::vector<TextTable::Cell>& cells, const TimePair& time) {
  cells.emplace_back(format_duration(time.base));
  cells.emplace_back(format_duration(time.now));
  cells.emplace_back(time_difference_text(time.difference()));
}

void add_times_row(TextTable& table, std::vector<TextTable::Cell> words, const TimePair& time) {
  append_times(words, time);
  table.add_row(std::move(words));
}

std::string count_text(const CountPair& count) {
  return count.base == count.now ? std::to_string(count.base) : fmt::format("{} → {}", count.base, count.now);
}

TextTable table_of_times(const std::string& what, std::vector<TextTable::Column> more = {}) {
  std::vector<TextTable::Column> columns = {{what, Align::kLeft}};
  columns.insert(columns.end(), more.begin(), more.end());
  for (const char* heading : {"base", "new", "difference"}) columns.push_back({heading, Align::kRight});
  return TextTable(std::move(columns));
}

/// Adds one row that sums up the elements that are not shown.
template <typename Element>
void add_others(TextTable& table, const std::vector<Element>& elements, std::size_t shown,
                std::size_t words) {
  if (elements.size() <= shown) return;
  TimePair others;
  for (std::size_t i = shown; i < elements.size(); ++i) {
    others.base += elements[i].time.base;
    others.now += elements[i].time.now;
  }
  std::vector<TextTable::Cell> cells(words, "");
  cells[0] = fmt::format("{} more", elements.size() - shown);
  add_times_row(table, std::move(cells), others);
}

std::string summary_text(const TimelineDiff& diff, const Page& page) {
  TextTable table = table_of_times("last step");
  for (const PhaseDifference& phase : diff.phases)
    add_times_row(table, {phase.name.empty() ? "outside of phases" : phase.name}, phase.time);
  table.add_rule();
  add_times_row(table, {"operators"}, diff.operators);
  add_times_row(table, {"stalls"}, diff.waits);
  add_times_row(table, {"rest, between operators"}, diff.rest);
  table.add_rule();
  add_times_row(table, {"step"}, diff.step);
  return table.render(page);
}

std::string ops_text(const TimelineDiff& diff, std::size_t shown, const Page& page) {
  if (diff.ops.empty()) return "";
  TextTable table = table_of_times("operators without stalls", {{"count", Align::kRight}});
  for (std::size_t i = 0; i < std::min(shown, diff.ops.size()); ++i)
    add_times_row(table, {diff.ops[i].op, count_text(diff.ops[i].count)}, diff.ops[i].time);
  add_others(table, diff.ops, shown, 2);
  return "\n" + table.render(page);
}

/// Returns the reason on the new side, or on the base side if the new side does not wait there.
std::string reason_text(const WaitDifference& wait) {
  return wait.now_reason.empty() ? wait.base_reason : wait.now_reason;
}

std::string waits_text(const TimelineDiff& diff, std::size_t shown, const Page& page) {
  const auto& waits = diff.wait_differences;
  if (waits.empty()) return "";
  TextTable table = table_of_times("stalls", {{"tensor", Align::kRight}, {"reason", Align::kLeft}});
  for (std::size_t i = 0; i < std::min(shown, waits.size()); ++i) {
    const std::string tensor = waits[i].tensor < 0 ? "-" : std::to_string(waits[i].tensor);
    add_times_row(table, {waits[i].name, tensor, reason_text(waits[i])}, waits[i].time);
  }
  add_others(table, waits, shown, 3);
  return "\n" + table.render(page);
}

std::string launch_text(const TimelineDiff& diff, const Page& page) {
  if (diff.launch_waits.empty()) return "";
  TextTable table = table_of_times("waits for launch", {{"count", Align::kRight}});
  for (const LaunchDifference& waits : diff.launch_waits)
    add_times_row(table, {waits.phase.empty() ? "outside of phases" : waits.phase, count_text(waits.count)},
                  waits.time);
  const std::string note =
      "These waits are part of the operators and the rest above. Only simulations show them, and their "
      "position is approximate: the waits of a sequence of kernels are added up at its end.";
  return "\n" + table.render(page) + "  " + wrap(note, page.width, 2) + "\n";
}

/// Formats a rate; one byte per nanosecond is one GB per second.
std::string rate_text(Bytes bytes, Nanoseconds busy) {
  if (busy <= 0) return "-";
  return format_rate(1e9 * static_cast<double>(bytes) / static_cast<double>(busy));
}

std::string copies_text(const TimelineDiff& diff, const Page& page) {
  if (diff.copies.empty()) return "";
  TextTable table({{"copies", Align::kLeft},
                   {"count", Align::kRight},
                   {"bytes", Align::kRight},
                   {"busy", Align::kRight},
                   {"rate", Align::kRight}});
  const auto add = [&](const std::string& what, std::int64_t count, Bytes bytes, Nanoseconds busy) {
    table.add_row(
        {what, std::to_string(count), format_bytes(bytes), format_duration(busy), rate_text(bytes, busy)});
  };
  for (const CopyDifference& copies : diff.copies) {
    const std::string direction = direction_text(copies.track);
    add(direction + ", base", copies.count.base, copies.bytes.base, copies.busy.base);
    add(direction + ", new", copies.count.now, copies.bytes.now, copies.busy.now);
  }
  return "\n" + table.render(page);
}

/// Returns the start time in the base, or in the new side if the base does not have the place.
std::string at_text(const PlaceDifference& place) {
  return format_duration(place.base_at ? *place.base_at : place.now_at.value_or(0));
}

std::string places_text(const TimelineDiff& diff, std::size_t shown, const Page& page) {
  if (diff.places.empty()) return "";
  TextTable table = table_of_times("places, with stalls", {{"phase", Align::kLeft}, {"at", Align::kRight}});
  for (std::size_t i = 0; i < std::min(shown, diff.places.size()); ++i) {
    const PlaceDifference& place = diff.places[i];
    const char* missing = !place.base_at ? " (new only)" : !place.now_at ? " (base only)" : "";
    add_times_row(table,
                  {fmt::format("{} #{}{}", place.op, place.occurrence, missing),
                   place.phase.empty() ? "-" : place.phase, at_text(place)},
                  place.time);
  }
  add_others(table, diff.places, shown, 3);
  return "\n" + table.render(page);
}

}  // namespace

Json to_json(const TimelineDiff& diff) {
  return {{"step", to_json(diff.step)},
          {"operators", to_json(diff.operators)},
          {"waits", to_json(diff.waits)},
          {"rest", to_json(diff.rest)},
          {"phases", list_to_json(diff.phases)},
          {"by_operator", list_to_json(diff.ops)},
          {"by_wait", list_to_json(diff.wait_differences)},
          {"waits_for_launch", list_to_json(diff.launch_waits)},
          {"copies", list_to_json(diff.copies)},
          {"places", list_to_json(diff.places)}};
}

std::string to_text(const TimelineDiff& diff, std::size_t shown, const Page& page) {
  if (!page.details) return summary_text(diff, page) + "\n  -v lists operators, stalls, copies and places.\n";
  return summary_text(diff, page) + ops_text(diff, shown, page) + waits_text(diff, shown, page) +
         launch_text(diff, page) + copies_text(diff, page) + places_text(diff, shown, page);
}

}  // namespace offprof
