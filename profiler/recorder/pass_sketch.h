#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "profiler/recording/recorded_pass.h"

namespace offprof {

/// Builds a recorded pass event by event, on a clock that advances only when told to. For tests.
class PassSketch {
 public:
  explicit PassSketch(Bytes resident_bytes = 0, Nanoseconds begin_ns = 0) : now_(begin_ns) {
    pass_.resident_bytes = resident_bytes;
    pass_.begin_ns = begin_ns;
  }

  PassSketch& compute(Nanoseconds duration) {
    now_ += duration;
    return *this;
  }
  PassSketch& phase(const std::string& name) { return note(RawKind::kPhase, name_index(name)); }
  PassSketch& op_begin(const std::string& name) { return note(RawKind::kOpBegin, open(name), depth_++); }
  PassSketch& op_end() {
    const std::int64_t name = open_ops_.back();
    open_ops_.pop_back();
    return note(RawKind::kOpEnd, name, --depth_);
  }

  PassSketch& alloc(std::int64_t id, Bytes bytes) {
    bytes_[id] = bytes;
    return note(RawKind::kAlloc, id, bytes);
  }
  /// Allocates memory for a parameter that the program gathers.
  PassSketch& gather(std::int64_t id, Bytes bytes) {
    pass_.gathered.insert(id);
    return alloc(id, bytes);
  }
  PassSketch& request_free(std::int64_t id) { return note(RawKind::kFreeRequested, id); }
  PassSketch& free(std::int64_t id) { return note(RawKind::kFree, id, bytes_.at(id)); }
  /// Drops the model's reference, so that only the engine holds the storage.
  PassSketch& program_free(std::int64_t id) { return note(RawKind::kProgramFree, id); }
  /// Frees a storage that is older than the step.
  PassSketch& free_older(std::int64_t id, Bytes bytes) { return note(RawKind::kFree, id, bytes); }
  /// Sets the bytes that the caching allocator holds from here on.
  PassSketch& reserved(Bytes bytes) { return note(RawKind::kReserved, 0, bytes); }
  PassSketch& reload(std::int64_t id, Bytes bytes, CopyId copy) {
    alloc(id, bytes);
    return note(RawKind::kReload, id, copy);
  }

  /// Saves a tensor that covers a whole allocation of the step.
  PassSketch& pack(std::int64_t storage, CopyId copy = -1) {
    RawSaved raw;
    raw.storage = storage;
    raw.storage_bytes = raw.saved.bytes = bytes_.at(storage);
    raw.copy = copy;
    return pack(raw);
  }
  PassSketch& pack(RawSaved raw) {
    pass_.saved.push_back(std::move(raw));
    pass_.escaped.push_back(0);
    return note(RawKind::kPack, static_cast<std::int64_t>(pass_.saved.size()) - 1);
  }
  PassSketch& unpack(SavedId tensor) { return note(RawKind::kUnpack, tensor); }
  PassSketch& release(SavedId tensor) { return note(RawKind::kRelease, tensor); }
  PassSketch& free_unpacked(SavedId tensor) { return note(RawKind::kFreeUnpacked, tensor); }
  PassSketch& node_end(const std::vector<SavedId>& escaped = {}) {
    for (const SavedId tensor : escaped) pass_.escaped[static_cast<std::size_t>(tensor)] = 1;
    return note(RawKind::kNodeEnd);
  }
  PassSketch& backward_end() { return note(RawKind::kBackwardEnd); }

  PassSketch& hook_begin() { return note(RawKind::kHookBegin); }
  PassSketch& hook_end() { return note(RawKind::kHookEnd); }
  /// Executes a command of that duration.
  PassSketch& command(const Command& command, Nanoseconds duration = 0) {
    const auto index = static_cast<std::int64_t>(pass_.commands.size());
    pass_.commands.push_back({command, now_, now_ + duration});
    pass_.events.push_back({RawKind::kCommand, index, 0, now_, now_ + duration});
    return compute(duration);
  }
  /// Adds the time that recording the last event took.
  PassSketch& noting_took(Nanoseconds duration) {
    pass_.events.back().end_ns += duration;
    return compute(duration);
  }

  RecordedPass finish() {
    pass_.end_ns = now_;
    return std::move(pass_);
  }

 private:
  PassSketch& note(RawKind kind, std::int64_t id = 0, std::int64_t value = 0) {
    pass_.events.push_back({kind, id, value, now_, now_});
    return *this;
  }
  std::int64_t open(const std::string& name) {
    open_ops_.push_back(name_index(name));
    return open_ops_.back();
  }
  std::int64_t name_index(const std::string& name) {
    const auto next = static_cast<std::int64_t>(pass_.names.size());
    const auto [found, is_new] = names_.try_emplace(name, next);
    if (is_new) pass_.names.push_back(name);
    return found->second;
  }

  RecordedPass pass_;
  Nanoseconds now_;
  std::map<std::string, std::int64_t> names_;
  std::map<std::int64_t, Bytes> bytes_;
  std::vector<std::int64_t> open_ops_;
  std::int64_t depth_ = 0;
};

}  // namespace offprof
