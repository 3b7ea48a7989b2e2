#include "engine/tensors/files/memory_snapshot_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "engine/tensors/files/pickle_machine.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

using Id = PickleValue::Id;
using Kind = PickleValue::Kind;

constexpr std::size_t kLongestText = 1000;
/// Highest size or address; device addresses have 57 bits at most.
constexpr std::int64_t kMost = std::int64_t{1} << 57;

/// Takes a snapshot apart.
class SnapshotReader {
 public:
  SnapshotReader(std::string_view pickle, const std::string& name)
      : name_(name), machine_(pickle, PickleContent::kPlain, name) {}

  DeviceSnapshot read() {
    const Id root = machine_.run();
    std::map<int, DeviceSnapshot> devices;
    int device = 0;
    for (const Id entries : list(member(root, "device_traces"))) {
      for (const Id entry : list(entries)) devices[device].entries.push_back(read_entry(entry));
      ++device;
    }
    for (const Id segment : list(member(root, "segments"))) read_segment(segment, devices);
    const auto rank = [](const auto& of) {
      return std::pair(of.second.entries.size(), of.second.reserved_bytes);
    };
    const auto most = std::ranges::max_element(devices, {}, rank);
    if (most == devices.end() || rank(*most) == std::pair(std::size_t{0}, std::int64_t{0}))
      fail("the snapshot has no memory", "Call torch.cuda.memory._record_memory_history() before the run.");
    most->second.device = most->first;
    return std::move(most->second);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const {
    throw input_error(fmt::format("{}: {}", name_, what),
                      hint.empty() ? "Write one: torch.cuda.memory._dump_snapshot('snapshot.pickle')" : hint);
  }

  std::optional<Id> find(Id dictionary, std::string_view key) const {
    const PickleValue& value = machine_.value(dictionary);
    if (value.kind != Kind::kDict) fail("it is not a memory snapshot");
    for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
      if (const PickleValue& name = machine_.value(value.items[i]);
          name.kind == Kind::kText && name.text == key)
        return value.items[i + 1];
    return std::nullopt;
  }

  Id member(Id dictionary, std::string_view key) const {
    const auto found = find(dictionary, key);
    if (!found) fail(fmt::format("it is not a memory snapshot: it has no '{}'", key));
    return *found;
  }

  const std::vector<Id>& list(Id id) const {
    const PickleValue& value = machine_.value(id);
    if (value.kind != Kind::kList) fail("it is not a memory snapshot: a list is missing");
    return value.items;
  }

  std::int64_t number(Id dictionary, std::string_view key) const {
    const PickleValue& value = machine_.value(member(dictionary, key));
    if (value.kind != Kind::kInteger || value.integer < 0 || value.integer > kMost)
      fail(fmt::format("'{}' is not a size or an address", key));
    return value.integer;
  }

  /// Adds two numbers, whose sum must be one that a device can have.
  std::int64_t sum(std::int64_t one, std::int64_t other) const {
    if (one > kMost - other) fail("its sizes exceed those of any device");
    return one + other;
  }

  std::int64_t number_or_zero(Id dictionary, std::string_view key) const {
    return find(dictionary, key) ? number(dictionary, key) : 0;
  }

  std::string text(Id dictionary, std::string_view key) const {
    const PickleValue& value = machine_.value(member(dictionary, key));
    if (value.kind != Kind::kText) fail(fmt::format("'{}' is not a text", key));
    return printable(value.text.substr(0, kLongestText));
  }

  SnapshotItem read_entry(Id entry) {
    SnapshotItem item{.action = text(entry, "action")};
    item.address = number_or_zero(entry, item.action == "oom" ? "device_free" : "addr");
    item.bytes = number(entry, "size");
    item.time_us = number_or_zero(entry, "time_us");
    item.place = place_of(entry);
    return item;
  }

  void read_segment(Id segment, std::map<int, DeviceSnapshot>& devices) {
    constexpr std::int64_t kMostDevices = 1024;
    DeviceSnapshot& device = devices[static_cast<int>(std::min(number(segment, "device"), kMostDevices))];
    device.reserved_bytes = sum(device.reserved_bytes, number(segment, "total_size"));
    std::int64_t address = number(segment, "address");
    for (const Id block : list(member(segment, "blocks"))) {
      SnapshotItem item{.action = text(block, "state"), .address = address};
      const std::int64_t bytes = number(block, "size");
      item.bytes = find(block, "requested_size") ? number(block, "requested_size") : bytes;
      address = sum(address, bytes);
      if (item.action == "inactive") continue;
      item.place = place_of(block);
      device.blocks.push_back(std::move(item));
    }
  }

  /// Returns the place of the first frame that is not of PyTorch. Lists of frames are shared by entries.
  std::string place_of(Id owner) {
    const auto frames = find(owner, "frames");
    if (!frames || machine_.value(*frames).kind != Kind::kList) return {};
    const auto [known, is_new] = places_.try_emplace(*frames);
    if (!is_new) return known->second;
    std::string first;
    for (const Id frame : std::vector(list(*frames))) {
      const std::string file = text(frame, "filename");
      if (!file.ends_with(".py")) continue;
      const std::string place =
          fmt::format("{} ({}:{})", text(frame, "name"), short_path(file), number(frame, "line"));
      if (first.empty()) first = place;
      if (file.find("/torch/") != std::string::npos) continue;
      first = place;
      break;
    }
    return places_[*frames] = first;
  }

  /// Returns the last two parts of a path: enough to know the file, and without folders of the machine.
  static std::string short_path(const std::string& file) {
    std::size_t slash = file.rfind('/');
    if (slash != std::string::npos && slash > 0) slash = file.rfind('/', slash - 1);
    return slash == std::string::npos ? file : file.substr(slash + 1);
  }

  const std::string& name_;
  PickleMachine machine_;
  std::unordered_map<Id, std::string> places_;
};

}  // namespace

DeviceSnapshot read_memory_snapshot(std::string_view pickle, const std::string& name) {
  return SnapshotReader(pickle, name).read();
}

}  // namespace offprof
