#include "traces/program_io.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>

#include "traces/allocator_state_io.h"

namespace offprof {
namespace {

/// One letter for each StorageRole and each EventKind, in the order of their values.
constexpr std::string_view kRoleLetters = "APBIR";
static_assert(kRoleLetters.size() == static_cast<std::size_t>(StorageRole::kResident) + 1);
constexpr std::string_view kEventLetters = "H()AFPURNLB";
static_assert(kEventLetters.size() == static_cast<std::size_t>(EventKind::kBackwardEnd) + 1);

constexpr std::array<std::string_view, 7> kMovabilities = {
    "movable", "parameter", "buffer", "input", "resident", "empty", "unsupported_layout"};
static_assert(kMovabilities.size() == static_cast<std::size_t>(Movability::kUnsupportedLayout) + 1);

constexpr std::array<std::string_view, 11> kColumns = {
    "storage", "version", "movability", "is_parameter",   "escapes", "op",
    "dtype",   "sizes",   "strides",    "storage_offset", "bytes"};

constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxVersion = std::numeric_limits<std::uint32_t>::max();

std::string quoted(const std::string& text) {
  return dump_json(text, -1);
}

template <typename... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

/// `[1,2,3]` of what `project` makes of each element.
template <typename Range, typename Project>
void append_column(std::string& out, const Range& range, const Project& project) {
  out += '[';
  const char* separator = "";
  for (const auto& element : range) {
    append(out, "{}{}", separator, project(element));
    separator = ",";
  }
  out += ']';
}

template <typename Range, typename Project>
std::string letters(const Range& range, std::string_view alphabet, const Project& project) {
  std::string text;
  text.reserve(range.size());
  for (const auto& element : range) text += alphabet.at(static_cast<std::size_t>(project(element)));
  return text;
}

void append_storages(std::string& out, const std::vector<ProgramStorage>& storages) {
  append(out, "\"storages\": {{\"roles\": \"{}\", \"bytes\": ",
         letters(storages, kRoleLetters, [](const auto& storage) { return storage.role; }));
  append_column(out, storages, [](const auto& storage) { return storage.bytes; });
  out += '}';
}

void append_saved_row(std::string& out, const SavedTensor& saved) {
  append(out, "\n[{},{},\"{}\",{},{},{},{},[{}],[{}],{},{}]", saved.storage, saved.version,
         kMovabilities.at(static_cast<std::size_t>(saved.movability)), saved.is_parameter, saved.escapes,
         saved.op, quoted(saved.layout->dtype), fmt::join(saved.layout->sizes, ","),
         fmt::join(saved.layout->strides, ","), saved.storage_offset, saved.bytes);
}

void append_saved(std::string& out, const std::vector<SavedTensor>& saved) {
  append(out, "\"saved\": {{\"columns\": [\"{}\"], \"rows\": [", fmt::join(kColumns, "\", \""));
  const char* separator = "";
  for (const SavedTensor& tensor : saved) {
    out += separator;
    append_saved_row(out, tensor);
    separator = ",";
  }
  out += "]}";
}

void append_events(std::string& out, const Program& program) {
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

void append_work(std::string& out, const std::vector<Work>& work) {
  out += "\"work\": {\"host_ns\": ";
  append_column(out, work, [](const Work& part) { return part.host_ns; });
  out += ",\n\"stream_ns\": ";
  append_column(out, work, [](const Work& part) { return part.stream_ns; });
  out += ",\n\"path_ns\": ";
  append_column(out, work, [](const Work& part) { return part.path_ns; });
  out += ",\n\"busy_ns\": ";
  append_column(out, work, [](const Work& part) { return part.busy_ns; });
  if (std::ranges::any_of(work, &Work::waits)) {
    out += ",\n\"wait_ns\": ";
    append_column(out, work, [](const Work& part) { return part.waits() ? part.wait_ns : -1; });
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

/// The values that the letters of a string stand for.
template <typename Enum>
std::vector<Enum> read_letters(const JsonValue& json, std::string_view alphabet) {
  const std::string& text = json.as_string();
  std::vector<Enum> values;
  values.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto index = alphabet.find(text[i]);
    if (index == std::string_view::npos) {
      json.fail(fmt::format("letter {} is {}, none of {}", i, quoted(text.substr(i, 1)), alphabet));
    }
    values.push_back(static_cast<Enum>(index));
  }
  return values;
}

void require_length(const JsonValue& column, std::size_t length) {
  if (column.size() == length) return;
  column.fail(fmt::format("has {} elements where the columns beside it have {}", column.size(), length));
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

/// Where each of kColumns stands in a row: columns may be added, or come in another order.
using ColumnPlaces = std::array<std::size_t, kColumns.size()>;

ColumnPlaces read_columns(const JsonValue& json) {
  const auto names = json.as_strings();
  ColumnPlaces places{};
  for (std::size_t i = 0; i < kColumns.size(); ++i) {
    const auto found = std::ranges::find(names, kColumns[i]);
    if (found == names.end()) json.fail(fmt::format("column '{}' is missing", kColumns[i]));
    places[i] = static_cast<std::size_t>(found - names.begin());
  }
  return places;
}

SavedTensor read_saved_row(const JsonValue& row, const ColumnPlaces& places) {
  std::size_t column = 0;  // cells are read in the order of kColumns
  const auto next = [&] { return row.element(places[column++]); };
  SavedTensor saved;
  saved.storage = static_cast<std::int32_t>(next().as_integer(-1, kMaxIndex));
  saved.version = static_cast<std::uint32_t>(next().as_integer(0, kMaxVersion));
  saved.movability = static_cast<Movability>(next().as_one_of(kMovabilities));
  saved.is_parameter = next().as_bool();
  saved.escapes = next().as_bool();
  saved.op = static_cast<std::int32_t>(next().as_integer(0, kMaxIndex));
  TensorLayout layout;
  layout.dtype = next().as_string();
  layout.sizes = next().as_integers();
  layout.strides = next().as_integers();
  saved.layout = std::move(layout);
  saved.storage_offset = next().as_integer();
  saved.bytes = next().as_integer();
  return saved;
}

/// Reads packed rows without unpacking them.
class SavedTable {
 public:
  SavedTable(const PackedTable& table, const ColumnPlaces& places) : table_(table), places_(places) {
    for (const nlohmann::json& value : table.distinct()) distinct_.push_back(read_distinct(value));
  }

  /// False where a cell is not what it should be.
  bool read(std::size_t row, SavedTensor& saved) {
    std::size_t column = 0;  // cells are read in the order of kColumns
    const auto integer = [&](auto& to, std::int64_t low, std::int64_t high) {
      const std::size_t place = places_[column++];
      const std::int64_t value = table_.value(row, place);
      to = static_cast<std::remove_reference_t<decltype(to)>>(value);
      return table_.is_integer(place) && value >= low && value <= high;
    };
    const auto distinct = [&](auto& to, auto Distinct::*member) {
      const auto* value = distinct_at(row, places_[column++], member);
      if (value != nullptr) to = *value;
      return value != nullptr;
    };
    const auto layout = [&](SharedLayout& to) {
      const std::array places = {places_[column], places_[column + 1], places_[column + 2]};
      column += places.size();
      return read_layout(row, places, to);
    };
    return integer(saved.storage, -1, kMaxIndex) && integer(saved.version, 0, kMaxVersion) &&
           distinct(saved.movability, &Distinct::movability) &&
           distinct(saved.is_parameter, &Distinct::boolean) && distinct(saved.escapes, &Distinct::boolean) &&
           integer(saved.op, 0, kMaxIndex) && layout(saved.layout) &&
           integer(saved.storage_offset, 0, kMaxInteger) && integer(saved.bytes, 0, kMaxInteger);
  }

  bool has_all_columns() const {
    return std::ranges::all_of(places_, [&](std::size_t place) { return place < table_.columns(); });
  }

 private:
  /// What a cell's value may mean.
  struct Distinct {
    std::optional<Movability> movability{};
    std::optional<bool> boolean{};
    std::optional<std::string> text{};
    std::optional<std::vector<std::int64_t>> list{};
  };

  static Distinct read_distinct(const nlohmann::json& json) {
    Distinct value;
    if (json.is_boolean()) value.boolean = json.get<bool>();
    if (json.is_string()) {
      value.text = json.get<std::string>();
      const auto found = std::ranges::find(kMovabilities, *value.text);
      if (found != kMovabilities.end())
        value.movability = static_cast<Movability>(found - kMovabilities.begin());
    }
    const auto is_size = [](const nlohmann::json& size) { return size.is_number_unsigned(); };
    if (json.is_array() && std::ranges::all_of(json, is_size))
      value.list = json.get<std::vector<std::int64_t>>();
    return value;
  }

  /// nullptr: the cell is of another kind.
  template <typename Value>
  const Value* distinct_at(std::size_t row, std::size_t place, std::optional<Value> Distinct::*member) const {
    if (table_.is_integer(place)) return nullptr;
    const std::optional<Value>& value = distinct_[static_cast<std::size_t>(table_.value(row, place))].*member;
    return value ? &*value : nullptr;
  }

  /// `places`: of dtype, sizes and strides.
  bool read_layout(std::size_t row, const std::array<std::size_t, 3>& places, SharedLayout& layout) {
    const std::array key = {table_.value(row, places[0]), table_.value(row, places[1]),
                            table_.value(row, places[2])};
    if (const auto known = layouts_.find(key); known != layouts_.end()) {
      layout = known->second;
      return true;
    }
    const std::string* dtype = distinct_at(row, places[0], &Distinct::text);
    const auto* sizes = distinct_at(row, places[1], &Distinct::list);
    const auto* strides = distinct_at(row, places[2], &Distinct::list);
    if (dtype == nullptr || sizes == nullptr || strides == nullptr) return false;
    layout = layouts_.emplace(key, TensorLayout{*dtype, *sizes, *strides}).first->second;
    return true;
  }

  const PackedTable& table_;
  const ColumnPlaces& places_;
  std::vector<Distinct> distinct_;
  std::map<std::array<std::int64_t, 3>, SharedLayout> layouts_;  ///< by the cells that say it
};

std::vector<SavedTensor> read_saved(const JsonValue& json) {
  const ColumnPlaces places = read_columns(json.at("columns"));
  const JsonValue rows = json.at("rows");
  std::optional<SavedTable> table;
  if (const PackedTable* packed = rows.packed_table()) table.emplace(*packed, places);
  if (table && !table->has_all_columns()) table.reset();
  std::vector<SavedTensor> saved(rows.size());
  for (std::size_t i = 0; i < saved.size();
       ++i) {  // what is wrong with a row, if anything, read_saved_row says
    if (!table || !table->read(i, saved[i])) saved[i] = read_saved_row(rows.element(i), places);
  }
  rows.release();
  return saved;
}

}  // namespace

void append_program(std::string& out, const Program& program) {
  append(out, "{{\"resident_bytes\": {},\n\"names\": ", program.resident_bytes);
  append_column(out, program.names, quoted);
  out += ",\n";
  append_storages(out, program.storages);
  out += ",\n";
  append_saved(out, program.saved);
  out += ",\n";
  append_events(out, program);
  if (!program.work.empty()) {
    out += ",\n";
    append_work(out, program.work);
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

Program program_from_json(const JsonValue& json) {
  Program program;
  program.resident_bytes = json.at("resident_bytes").as_integer();
  program.names = json.at("names").as_strings();
  program.storages = read_storages(json.at("storages"));
  program.events = read_events(json.at("events"));  // the largest part first, while there is least beside it
  if (const auto spread = json.at("events").find("compute_spread_ns"))
    program.compute_spread_ns = read_spread(*spread, program.events.size());
  program.saved = read_saved(json.at("saved"));
  if (const auto work = json.find("work")) program.work = read_work(*work, program.events.size());
  if (const auto staging = json.find("staging")) program.staging = read_staging(*staging);
  if (const auto allocator = json.find("allocator"))
    program.allocator = allocator_state_from_json(*allocator);
  check_program(program, json.where());
  return program;
}

}  // namespace offprof
