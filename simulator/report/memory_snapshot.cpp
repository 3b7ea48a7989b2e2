#include "simulator/report/memory_snapshot.h"

#include <charconv>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "simulator/allocator/caching_allocator.h"
#include "traces/io/pickle_writer.h"

namespace offprof {
namespace {

using Handle = CachingAllocator::Handle;

/// Returns the state at the start of the step. Without a caching allocator, the residents are allocated from
/// an empty cache.
CachingAllocator allocator_of(const StepProgram& program, const StepRecord& record) {
  if (program.allocator) return CachingAllocator(*program.allocator);
  CachingAllocator allocator{AllocatorSettings{}};
  Bytes unnamed = record.resident_bytes;
  for (std::size_t i = 0; i < program.storages.size(); ++i) {
    const auto& [bytes, role, stream] = program.storages[i];
    if (!is_older_than_step(role) || bytes == 0) continue;
    allocator.allocate(bytes, stream, static_cast<std::int32_t>(i));
    unnamed -= bytes;
  }
  for (const std::int32_t freed : record.freed_residents) unnamed += program.storages[freed].bytes;
  if (unnamed > 0) allocator.allocate(unnamed, kComputeStream);
  return allocator;
}

/// Writes the entries of a device's trace, and its segments.
class SnapshotWriter {
 public:
  SnapshotWriter(const StepProgram& program, const StepRecord& record)
      : program_(program),
        record_(record),
        allocator_(allocator_of(program, record)),
        handles_(record.lives.size(), -1),
        segments_(allocator_.segments()),
        reserved_(allocator_.counters().reserved.current),
        first_life_(static_cast<std::int32_t>(program.storages.size())) {
    const std::map<std::int32_t, Handle> residents = allocator_.blocks_by_storage();
    for (std::size_t i = 0; i < record.freed_residents.size(); ++i)
      if (const auto block = residents.find(record.freed_residents[i]); block != residents.end())
        handles_[i] = block->second;
  }

  std::string write() {
    pickle_.begin_dict();
    pickle_.text("device_traces");
    pickle_.begin_list();
    write_trace();
    pickle_.end_list();
    pickle_.text("segments");
    write_segments();
    pickle_.text("allocator_settings");
    write_settings();
    pickle_.text("external_annotations");
    pickle_.begin_list();
    pickle_.end_list();
    pickle_.end_dict();
    return pickle_.take();
  }

 private:
  void write_trace() {
    pickle_.begin_list();
    for (const auto& [at_ns, life, is_begin] : record_.changes) {
      if (is_begin && record_.lives[life].kind == MemoryKind::kResident) continue;
      if (is_begin)
        allocate(life, at_ns);
      else
        free(life, at_ns);
    }
    pickle_.end_list();
  }

  void allocate(std::int32_t life, Nanoseconds at_ns) {
    const MemoryLife& made = record_.lives[life];
    handles_[life] = allocator_.allocate(made.bytes, made.stream, life + first_life_);
    write_changed_segments(life, at_ns);
    write_entry("alloc", life, allocator_.block_address(handles_[life]), made.bytes, made.stream, at_ns);
  }

  void free(std::int32_t life, Nanoseconds at_ns) {
    const Handle block = std::exchange(handles_[life], -1);
    if (block < 0) return;  // a resident in no block of the recorded state
    const MemoryLife& freed = record_.lives[life];
    const Bytes address = allocator_.block_address(block);
    allocator_.free(block);
    for (const char* action : {"free_requested", "free_completed"})
      write_entry(action, life, address, freed.bytes, freed.stream, at_ns);
    write_changed_segments(life, at_ns);
  }

  /// Writes what the allocator has requested from CUDA or returned to it since the last call.
  void write_changed_segments(std::int32_t life, Nanoseconds at_ns) {
    if (allocator_.counters().reserved.current == reserved_) return;
    reserved_ = allocator_.counters().reserved.current;
    const std::map<Bytes, const CachedSegment*> before = by_address(segments_);
    const std::vector<CachedSegment> now = allocator_.segments();
    const std::map<Bytes, const CachedSegment*> after = by_address(now);
    for (const auto& [address, segment] : before) {
      const auto same = after.find(address);
      const Bytes left = same == after.end() ? 0 : bytes_of(*same->second);
      if (left < bytes_of(*segment))
        write_segment_entry(*segment, "free", left, bytes_of(*segment), life, at_ns);
    }
    for (const auto& [address, segment] : after) {
      const auto same = before.find(address);
      const Bytes old = same == before.end() ? 0 : bytes_of(*same->second);
      if (old < bytes_of(*segment))
        write_segment_entry(*segment, "alloc", old, bytes_of(*segment), life, at_ns);
    }
    segments_ = now;
  }

  static std::map<Bytes, const CachedSegment*> by_address(const std::vector<CachedSegment>& segments) {
    std::map<Bytes, const CachedSegment*> map;
    for (const CachedSegment& segment : segments) map.emplace(segment.address, &segment);
    return map;
  }

  static Bytes bytes_of(const CachedSegment& segment) {
    Bytes sum = 0;
    for (const CachedBlock& block : segment.blocks) sum += block.bytes;
    return sum;
  }

  /// Writes that the bytes from `begin` to `end` of a segment came or went; parts of expandable segments are
  /// mapped and unmapped.
  void write_segment_entry(const CachedSegment& segment, const std::string& change, Bytes begin, Bytes end,
                           std::int32_t life, Nanoseconds at_ns) {
    const std::string action = !segment.is_expandable ? "segment_" + change
                               : change == "alloc"    ? "segment_map"
                                                      : "segment_unmap";
    write_entry(action, life, segment.address + begin, end - begin, segment.stream, at_ns);
  }

  void write_entry(const std::string& action, std::int32_t life, Bytes address, Bytes bytes,
                   std::int32_t stream, Nanoseconds at_ns) {
    pickle_.begin_dict();
    write_member("action", action);
    write_member("addr", address);
    write_member("size", bytes);
    write_member("stream", stream);
    write_member("time_us", at_ns / 1000);
    write_member("compile_context", "N/A");
    write_member("user_metadata", to_string(record_.lives[life].kind));
    pickle_.text("frames");
    write_frames(record_.lives[life].origin);
    pickle_.end_dict();
  }

  /// Writes the frames, innermost first; equal ones are stored once.
  void write_frames(const Origin& origin) {
    const auto key = std::tuple(origin.op, origin.module, origin.line);
    if (const auto known = frames_.find(key); known != frames_.end()) return pickle_.repeat(known->second);
    pickle_.begin_list();
    if (origin.op >= 0) write_frame(program_.names[origin.op], "operator", 0);
    if (origin.line >= 0) {
      const auto [file, line] = place_of(program_.names[origin.line]);
      write_frame(origin.module < 0 ? "" : program_.names[origin.module], file, line);
    } else if (origin.module >= 0) {
      write_frame(program_.names[origin.module], "module", 0);
    }
    pickle_.end_list();
    frames_[key] = pickle_.remember();
  }

  /// Splits `FILE:LINE`.
  static std::pair<std::string, std::int64_t> place_of(const std::string& place) {
    const std::size_t colon = place.rfind(':');
    std::int64_t line = 0;
    if (colon != std::string::npos)
      std::from_chars(place.data() + colon + 1, place.data() + place.size(), line);
    return {place.substr(0, colon), line};
  }

  void write_frame(const std::string& name, const std::string& file, std::int64_t line) {
    pickle_.begin_dict();
    write_member("filename", file);
    write_member("line", line);
    write_member("name", name);
    pickle_.end_dict();
  }

  void write_segments() {
    pickle_.begin_list();
    for (const CachedSegment& segment : allocator_.segments()) write_segment(segment);
    pickle_.end_list();
  }

  void write_segment(const CachedSegment& segment) {
    Bytes allocated = 0, active = 0, requested = 0;
    for (const CachedBlock& block : segment.blocks) {
      allocated += block.allocated ? block.bytes : 0;
      active += block.active ? block.bytes : 0;
      requested += block.requested_bytes;
    }
    pickle_.begin_dict();
    write_member("device", 0);
    write_member("address", segment.address);
    write_member("total_size", bytes_of(segment));
    write_member("allocated_size", allocated);
    write_member("active_size", active);
    write_member("requested_size", requested);
    write_member("stream", segment.stream);
    write_member("segment_type", segment.is_large ? "large" : "small");
    pickle_.text("segment_pool_id");
    pickle_.pair(0, 0);
    pickle_.text("is_expandable");
    pickle_.boolean(segment.is_expandable);
    pickle_.text("frames");
    write_frames({});
    pickle_.text("blocks");
    pickle_.begin_list();
    Bytes address = segment.address;
    for (const CachedBlock& block : segment.blocks) {
      write_block(block, address);
      address += block.bytes;
    }
    pickle_.end_list();
    pickle_.end_dict();
  }

  void write_block(const CachedBlock& block, Bytes address) {
    const std::int32_t life = block.storage - first_life_;
    pickle_.begin_dict();
    write_member("address", address);
    write_member("size", block.bytes);
    write_member("requested_size", block.requested_bytes);
    write_member("state", block.allocated ? "active_allocated"
                          : block.active  ? "active_pending_free"
                                          : "inactive");
    pickle_.text("frames");
    write_frames(life >= 0 && block.allocated ? record_.lives[life].origin : Origin{});
    pickle_.end_dict();
  }

  void write_settings() {
    pickle_.begin_dict();
    write_member("PYTORCH_CUDA_ALLOC_CONF", program_.allocator ? program_.allocator->settings : "");
    pickle_.text("expandable_segments");
    pickle_.boolean(allocator_.settings().expandable_segments);
    pickle_.end_dict();
  }

  void write_member(std::string_view name, std::int64_t value) {
    pickle_.text(name);
    pickle_.integer(value);
  }
  void write_member(std::string_view name, std::string_view value) {
    pickle_.text(name);
    pickle_.text(value);
  }

  const StepProgram& program_;
  const StepRecord& record_;
  CachingAllocator allocator_;
  std::vector<Handle> handles_;  ///< blocks by life; -1: none
  std::vector<CachedSegment> segments_;
  Bytes reserved_;
  /// Blocks of lives have numbers from here on; below are the storages of the step program.
  std::int32_t first_life_;
  std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t>, PickleWriter::Memo> frames_;
  PickleWriter pickle_;
};

}  // namespace

std::string memory_snapshot(const StepProgram& program, const StepRecord& record) {
  return SnapshotWriter(program, record).write();
}

}  // namespace offprof
