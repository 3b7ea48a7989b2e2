#include "cli/tables/saved_listing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "cli/tables/figure_text.h"
#include "cli/terminal/text_table.h"
#include "simulator/replay/replay.h"
#include "simulator/steps/trace_steps.h"

namespace offprof {
namespace {

/// Least widths of a page with the columns for content and module, and with the column for the source line
/// too.
constexpr std::size_t kWithModule = 100, kWithLine = 140;

/// Records the placement of each saved tensor during a replay.
class PlacementNotes : public ReplayListener {
 public:
  PlacementNotes(const StepPlacements& placements, std::vector<SavedLine>& lines)
      : placements_(placements), lines_(lines) {}

  void on_placement(SavedId tensor, const PackDecision& decision) override {
    SavedLine& line = lines_[tensor];
    line.placement = to_string(Placement{transform_of(placements_, tensor, decision), decision.place});
    line.reason = decision.reason;
  }

 private:
  const StepPlacements& placements_;
  std::vector<SavedLine>& lines_;
};

/// Returns a name of the program; empty: it is not known.
std::string name_of(const StepProgram& program, std::int32_t name) {
  return name < 0 ? std::string() : program.names[name];
}

SavedLine line_of(const StepProgram& program, std::size_t number) {
  const SavedTensor& saved = program.saved[number];
  SavedLine line{.number = static_cast<std::int32_t>(number),
                 .op = program.names[saved.op],
                 .module = name_of(program, saved.module),
                 .line = name_of(program, saved.line),
                 .dtype = saved.layout->dtype,
                 .sizes = saved.layout->sizes,
                 .bytes = saved.bytes,
                 .storage = saved.storage,
                 .version = saved.version};
  if (saved.storage >= 0) line.storage_bytes = program.storages[saved.storage].bytes;
  return line;
}

const std::string& key_of(const SavedLine& line, SavedBy by) {
  switch (by) {
    case SavedBy::kOp:
      return line.op;
    case SavedBy::kModule:
      return line.module;
    case SavedBy::kLine:
      return line.line;
    case SavedBy::kDtype:
      return line.dtype;
    case SavedBy::kPlacement:
      break;
  }
  return line.placement;
}

std::string_view heading_of(SavedBy by) {
  constexpr std::array<std::string_view, 5> kHeadings = {"op", "module", "line", "dtype", "placement"};
  return kHeadings.at(static_cast<std::size_t>(by));
}

void add_to(LedgerEntry& sum, const SavedLine& line) {
  ++sum.tensors;
  sum.bytes += line.bytes;
}

std::vector<SavedGroup> group(const std::vector<SavedLine>& lines, SavedBy by) {
  std::map<std::string, LedgerEntry> sums;
  for (const SavedLine& line : lines) add_to(sums[key_of(line, by)], line);
  std::vector<SavedGroup> groups;
  for (const auto& [key, sum] : sums) groups.push_back({key, sum});
  std::ranges::stable_sort(groups, std::greater<>(),
                           [](const SavedGroup& group) { return group.saved.bytes; });
  return groups;
}

LedgerEntry sum_of(const SavedListing& listing) {
  LedgerEntry sum;
  for (const SavedLine& line : listing.lines) add_to(sum, line);
  return sum;
}

/// Returns the memory of the saved tensors, counting each content once, however many views it has.
LedgerEntry contents_of(const SavedListing& listing) {
  LedgerEntry sum;
  std::set<std::pair<std::int32_t, std::uint32_t>> seen;
  for (const SavedLine& line : listing.lines) {
    if (!line.storage_bytes || !seen.emplace(line.storage, line.version).second) continue;
    ++sum.tensors;
    sum.bytes += *line.storage_bytes;
  }
  return sum;
}

std::string or_dash(const std::string& text) {
  return text.empty() ? "-" : text;
}

/// Returns the tensor's placement, followed by the reason if it stays on the device or shares a copy.
std::string placement_text(const SavedLine& line) {
  if (line.reason == PlacementReason::kOffloaded || line.reason == PlacementReason::kRule)
    return line.placement;
  std::string reason(to_string(line.reason));
  std::ranges::replace(reason, '_', ' ');
  return fmt::format("{}: {}", line.placement, reason);
}

/// Returns all lines, or the `most_shown` largest in descending order of bytes.
std::vector<const SavedLine*> shown_of(const SavedListing& listing) {
  std::vector<const SavedLine*> shown;
  for (const SavedLine& line : listing.lines) shown.push_back(&line);
  if (!listing.most_shown) return shown;
  std::ranges::stable_sort(shown, std::greater<>(), &SavedLine::bytes);
  shown.resize(std::min(shown.size(), *listing.most_shown));
  return shown;
}

bool has_room_for_module(const Page& page) {
  return page.width >= kWithModule;
}

/// Returns true if the page has a column for the source lines. Modules of TorchScript have none.
bool shows_lines(const SavedListing& listing, const Page& page) {
  return page.width >= kWithLine &&
         std::ranges::any_of(listing.lines, [](const SavedLine& line) { return !line.line.empty(); });
}

/// Returns the sentence that says which columns a narrow page lacks; empty: none.
std::string missing_columns_text(const SavedListing& listing, const Page& page) {
  if (listing.by || has_room_for_module(page)) return {};
  return " A wider terminal or --format json also shows content, module and source line.";
}

/// Omits the columns for content, module and line on a narrow page, so that operators and shapes stay
/// readable.
std::string lines_text(const SavedListing& listing, const Page& page) {
  std::vector<TextTable::Column> columns = {{"number"},
                                            {"saved by", Align::kLeft},
                                            {"tensor", Align::kLeft},
                                            {"bytes"},
                                            {"placement", Align::kLeft}};
  if (has_room_for_module(page)) columns.insert(columns.end(), {{"content"}, {"module", Align::kLeft}});
  const bool with_lines = shows_lines(listing, page);
  if (with_lines) columns.push_back({"line", Align::kLeft});
  TextTable table(columns);
  for (const SavedLine* line : shown_of(listing)) {
    std::vector<TextTable::Cell> cells = {std::to_string(line->number), line->op,
                                          fmt::format("{}[{}]", line->dtype, fmt::join(line->sizes, ",")),
                                          format_bytes(line->bytes), placement_text(*line)};
    if (has_room_for_module(page)) {
      cells.emplace_back(line->storage < 0 ? "-" : fmt::format("{}.{}", line->storage, line->version));
      cells.emplace_back(or_dash(line->module));
    }
    if (with_lines) cells.emplace_back(or_dash(line->line));
    table.add_row(std::move(cells));
  }
  return table.render(page);
}

std::string groups_text(const SavedListing& listing, const Page& page) {
  const LedgerEntry sum = sum_of(listing);
  TextTable table({{fmt::format("saved, by {}", heading_of(*listing.by)), Align::kLeft},
                   {"tensors", Align::kRight},
                   {"bytes", Align::kRight},
                   {"share", Align::kRight}});
  const auto row = [&](const std::string& key, const LedgerEntry& saved) {
    table.add_row(
        {key, std::to_string(saved.tensors), format_bytes(saved.bytes), share_text(saved.bytes, sum.bytes)});
  };
  const std::size_t shown = std::min(listing.groups.size(), listing.most_shown.value_or(SIZE_MAX));
  for (std::size_t i = 0; i < shown; ++i) row(or_dash(listing.groups[i].key), listing.groups[i].saved);
  table.add_rule();
  row("all", sum);
  return table.render(page);
}

std::string rest_text(const SavedListing& listing) {
  const std::size_t count = listing.by ? listing.groups.size() : listing.lines.size();
  const std::size_t shown = listing.most_shown.value_or(count);
  return shown < count ? fmt::format("  ... and {} more: --top {}\n", count - shown, count) : "";
}

std::string sum_text(const SavedListing& listing, const Page& page) {
  const LedgerEntry saved = sum_of(listing), contents = contents_of(listing);
  return wrap(fmt::format(
                  "{} saved tensors of {} in total, views of {} contents (storage.version) that take {}. "
                  "Their placements are those of policy {}.{}",
                  saved.tensors, format_bytes(saved.bytes), contents.tensors, format_bytes(contents.bytes),
                  listing.policy, missing_columns_text(listing, page)),
              page.width, 0) +
         "\n";
}

/// Returns null for an empty text.
nlohmann::ordered_json text_or_null(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(text);
}

nlohmann::ordered_json line_to_json(const SavedLine& line) {
  nlohmann::ordered_json json = {{"number", line.number}, {"op", line.op}};
  json["module"] = text_or_null(line.module);
  json["line"] = text_or_null(line.line);
  json["dtype"] = line.dtype;
  json["sizes"] = line.sizes;
  json["bytes"] = line.bytes;
  if (line.storage_bytes) {
    json["storage"] = line.storage;
    json["version"] = line.version;
    json["storage_bytes"] = *line.storage_bytes;
  }
  json["placement"] = line.placement;
  json["reason"] = to_string(line.reason);
  return json;
}

}  // namespace

SavedListing list_saved(const Trace& trace, const std::string& source, std::optional<SavedBy> by,
                        std::optional<std::size_t> most_shown) {
  SavedListing listing{.source = source, .policy = trace.policy.name, .by = by};
  const TraceSteps steps(trace);
  const StepProgram& program = steps.program(trace.policy);
  for (std::size_t i = 0; i < program.saved.size(); ++i) listing.lines.push_back(line_of(program, i));
  const Step& step = steps.step(trace.policy);
  const StepPlacements placements = step.place(trace.policy);
  PlacementNotes notes(placements, listing.lines);
  replay(step, trace.policy, kAnyLink, &notes);
  if (by) listing.groups = group(listing.lines, *by);
  listing.most_shown = most_shown;
  return listing;
}

nlohmann::ordered_json to_json(const SavedListing& listing) {
  const LedgerEntry saved = sum_of(listing), contents = contents_of(listing);
  nlohmann::ordered_json json = {{"trace", listing.source},        {"policy", listing.policy},
                                 {"saved_tensors", saved.tensors}, {"saved_bytes", saved.bytes},
                                 {"contents", contents.tensors},   {"content_bytes", contents.bytes}};
  if (listing.by) {
    auto groups = nlohmann::ordered_json::array();
    for (const SavedGroup& group : listing.groups)
      groups.push_back({{std::string(heading_of(*listing.by)), group.key},
                        {"tensors", group.saved.tensors},
                        {"bytes", group.saved.bytes}});
    json[fmt::format("saved_by_{}", heading_of(*listing.by))] = std::move(groups);
    return json;
  }
  auto lines = nlohmann::ordered_json::array();
  for (const SavedLine& line : listing.lines) lines.push_back(line_to_json(line));
  json["saved"] = std::move(lines);
  return json;
}

std::string to_text(const SavedListing& listing, const Page& page) {
  const std::string table = listing.by ? groups_text(listing, page) : lines_text(listing, page);
  return table + rest_text(listing) + "\n" + sum_text(listing, page);
}

}  // namespace offprof
