#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "traces/base/error.h"
#include "traces/format/program_io.h"

namespace offprof {
namespace {

/// Follows a step program event by event and rejects impossible ones.
class ProgramCheck {
 public:
  ProgramCheck(const StepProgram& program, const std::string& where)
      : program_(program), where_(where), storages_(program.storages.size()), saved_(program.saved.size()) {}

  void run() {
    check_sizes();
    for (index_ = 0; index_ < program_.saved.size(); ++index_) check_saved(program_.saved[index_]);
    part_ = "events";
    for (index_ = 0; index_ < program_.events.size(); ++index_) check_event(program_.events[index_]);
    check_end();
    check_stream_commands();
    check_free_points();
    check_renewals();
    if (program_.allocator) check_allocator(*program_.allocator);
  }

 private:
  static constexpr std::int64_t kMostSum = std::int64_t{1} << 59;

  enum class StorageState : std::uint8_t { kNew, kLive, kFreed };
  enum class SavedState : std::uint8_t { kNew, kPacked, kReleased };
  struct Saved {
    SavedState state = SavedState::kNew;
    bool held = false;  ///< unpacked and not yet dropped; its node has not ended, or it escapes
  };

  [[noreturn]] void fail(const std::string& what) const {
    throw input_error(fmt::format("{}.{}[{}]: {}", where_, part_, index_, what), "Record the trace again.");
  }

  void require(bool condition, std::string_view what) const {
    if (!condition) fail(std::string(what));
  }

  void require_index(std::int64_t index, std::size_t count, std::string_view what) const {
    if (index >= 0 && index < static_cast<std::int64_t>(count)) return;
    fail(fmt::format("{} index {} of {}", what, index, count));
  }

  void add(std::int64_t& sum, std::int64_t value, std::string_view what) const {
    require(value >= 0, "is negative");
    if (__builtin_add_overflow(sum, value, &sum) || sum > kMostSum)
      fail(fmt::format("the sum of {} exceeds {}", what, kMostSum));
  }

  /// Checks that sums are far below 64 bits, so that code that adds up some of them cannot overflow.
  void check_sizes() {
    std::int64_t bytes = 0;
    part_ = "resident_bytes";
    add(bytes, program_.resident_bytes, "bytes");
    part_ = "storages";
    for (index_ = 0; index_ < program_.storages.size(); ++index_)
      add(bytes, program_.storages[index_].bytes, "bytes");
    part_ = "events";
    std::int64_t time = 0;
    for (index_ = 0; index_ < program_.events.size(); ++index_) {
      add(time, program_.events[index_].compute_ns, "compute_ns");
    }
    std::int64_t spread = 0;
    for (index_ = 0; index_ < program_.compute_spread_ns.size(); ++index_)
      add(spread, program_.compute_spread_ns[index_], "compute_spread_ns");
    part_ = "work";
    Nanoseconds host = 0, stream = 0, path = 0, wait = 0, busy = 0;
    const auto add_work = [&](const Work& work) {
      add(host, work.host_ns, "host_ns");
      add(stream, work.stream_ns, "stream_ns");
      add(path, work.path_ns, "path_ns");
      add(busy, work.busy_ns, "busy_ns");
      add(wait, std::max<Nanoseconds>(work.wait_ns, 0), "wait_ns");
      require(host + stream + path + wait < -Work::kNoWait / 2, "is longer than a step can be");
    };
    for (index_ = 0; index_ < program_.work.size(); ++index_) add_work(program_.work[index_]);
    part_ = "stream_commands";
    std::int64_t copied = 0;
    for (index_ = 0; index_ < program_.stream_commands.size(); ++index_) {
      add(stream, program_.stream_commands[index_].duration_ns, "duration_ns");
      add(copied, program_.stream_commands[index_].bytes, "bytes of copies");
      add_work(program_.stream_commands[index_].before);
    }
    part_ = "families";
    std::int64_t of_families = 0;
    for (index_ = 0; index_ < program_.families.size(); ++index_)
      add(of_families, program_.families[index_].busy_ns, "busy_ns");
    part_ = "staging";
    for (index_ = 0; index_ < program_.staging.size(); ++index_) {
      const Staging& staging = program_.staging[index_];
      require_index(staging.tensor, program_.saved.size(), "saved tensor");
      add(host, staging.host_ns, "host_ns");
      add(stream, staging.stream_ns, "stream_ns");
      require(host + stream + path + wait < -Work::kNoWait / 2, "is longer than a step can be");
    }
    part_ = "saved";
    check_saved_bytes();
  }

  /// Checks the sums that host memory may hold: bytes of the storages, which may count more than once, and
  /// bytes of the tensors themselves.
  void check_saved_bytes() {
    std::int64_t saved_bytes = 0, storage_bytes = 0;
    for (index_ = 0; index_ < program_.saved.size(); ++index_) {
      const SavedTensor& saved = program_.saved[index_];
      add(saved_bytes, saved.bytes, "saved bytes");
      if (saved.storage < 0) continue;
      require_index(saved.storage, program_.storages.size(), "storage");
      add(storage_bytes, program_.storages[saved.storage].bytes, "bytes of the storages");
    }
  }

  /// Checks the allocator's state. The storages in its blocks must be older than the step, each in one block.
  void check_allocator(const AllocatorState& allocator) {
    part_ = "allocator.segments";
    std::vector<char> seen(program_.storages.size(), 0);
    std::int64_t bytes = 0;
    for (index_ = 0; index_ < allocator.segments.size(); ++index_) {
      const AllocatorSegment& segment = allocator.segments[index_];
      for (const AllocatorBlock& block : segment.blocks) {
        add(bytes, block.bytes, "bytes");
        if (block.storage >= 0) check_resident(block, seen);
      }
    }
    check_ranges(allocator.segments);
  }

  void check_resident(const AllocatorBlock& block, std::vector<char>& seen) const {
    require_index(block.storage, program_.storages.size(), "storage");
    require(block.allocated, "a free block names a storage");
    require(is_older_than_step(block.storage), "a block holds a storage that the step allocates");
    require(!seen[block.storage], "two blocks hold the same storage");
    seen[block.storage] = 1;
  }

  /// Checks that the pieces of an address range follow one another with a hole between them.
  void check_ranges(const std::vector<AllocatorSegment>& segments) {
    std::int32_t last_range = -1;
    std::int64_t addresses = 0, end = 0;
    for (index_ = 0; index_ < segments.size(); ++index_) {
      const AllocatorSegment& segment = segments[index_];
      if (!segment.is_expandable) continue;
      if (segment.range == last_range) {
        const AllocatorSegment& before = segments[index_ - 1];
        require(before.range == segment.range, "the pieces of its address range are not consecutive");
        require(before.stream == segment.stream && before.is_large == segment.is_large,
                "its address range belongs to another stream or pool");
        require(segment.range_offset > end, "it does not follow the previous piece of its address range");
      } else {
        require(segment.range == last_range + 1, "address ranges must be numbered in order of appearance");
        add(addresses, end, "addresses");
      }
      last_range = segment.range;
      end = segment.range_offset;
      for (const AllocatorBlock& block : segment.blocks) add(end, block.bytes, "addresses");
    }
    add(addresses, end, "addresses");
  }

  /// Checks that commands are in the order of their events, and that points are recorded before they are
  /// waited for.
  void check_stream_commands() {
    part_ = "stream_commands";
    std::int32_t points = 0, last_event = 0;
    for (index_ = 0; index_ < program_.stream_commands.size(); ++index_) {
      const StreamCommand& command = program_.stream_commands[index_];
      require_index(command.event, program_.work.size(), "event with work");
      require(command.event >= last_event, "is of an earlier event than the command before it");
      last_event = command.event;
      if (!command.has_point()) {
        require(command.stream != 0 || !command.runs_kernel(),
                "runs on the compute stream, whose work is in `work`");
      } else if (command.kind == StreamCommand::Kind::kRecord) {
        require(command.point == points++, "points must be numbered in the order of their records");
      } else {
        require_index(command.point, static_cast<std::size_t>(points), "point");
      }
    }
  }

  /// Checks that frees with points are requested, and that the points are recorded.
  void check_free_points() {
    part_ = "free_points";
    const auto points =
        std::ranges::count(program_.stream_commands, StreamCommand::Kind::kRecord, &StreamCommand::kind);
    std::int32_t last = 0;
    for (index_ = 0; index_ < program_.free_points.size(); ++index_) {
      const FreePoint& freed = program_.free_points[index_];
      require_index(freed.storage, program_.storages.size(), "storage");
      require(freed.storage >= last, "is of an earlier storage than the point before it");
      last = freed.storage;
      require(requested_.contains(freed.storage), "is of a storage whose free is not requested");
      require_index(freed.point, static_cast<std::size_t>(points), "point");
    }
  }

  /// Checks that old storages are older than the step and freed in it, and that new ones are the step's own.
  void check_renewals() {
    part_ = "renewals";
    std::int32_t last = -1;
    std::unordered_set<std::int32_t> renewed;
    for (index_ = 0; index_ < program_.renewals.size(); ++index_) {
      const auto [old_storage, new_storage, let_go] = program_.renewals[index_];
      require_index(old_storage, program_.storages.size(), "old storage");
      require_index(new_storage, program_.storages.size(), "new storage");
      require(old_storage > last, "old storages must be in ascending order");
      last = old_storage;
      const ProgramStorage &before = program_.storages[old_storage], &after = program_.storages[new_storage];
      require(is_older_than_step(old_storage) && storages_[old_storage] == StorageState::kFreed,
              "the old storage is not one that is older than the step and freed in it");
      require(!is_older_than_step(new_storage) && renewed.insert(new_storage).second,
              "the new storage is not one of the step, or is named twice");
      require(before.bytes == after.bytes && before.stream == after.stream,
              "the new storage differs in its size or stream");
      require(!requested_.contains(old_storage) && !fetched_.contains(old_storage),
              "the old storage holds parameters that are copied, or waits for streams");
      if (let_go == -1) continue;
      require_index(let_go, program_.events.size(), "let_go: event");
      const auto is_freed = [freed = old_storage](const Event& event) {
        return event.kind == EventKind::kFree && event.id == freed;
      };
      require(std::none_of(program_.events.begin(), program_.events.begin() + let_go, is_freed),
              "let_go is beyond the event that frees the old storage");
    }
  }

  void check_saved(const SavedTensor& saved) const {
    const TensorLayout& layout = *saved.layout;
    const bool outlandish = saved.movability == Movability::kUnsupportedLayout;
    const bool without_storage = outlandish && saved.storage == -1;
    if (!without_storage) require_index(saved.storage, program_.storages.size(), "storage");
    require_index(saved.op, program_.names.size(), "op: name");
    if (saved.module != -1) require_index(saved.module, program_.names.size(), "module: name");
    if (saved.line != -1) require_index(saved.line, program_.names.size(), "line: name");
    require(outlandish || layout.strides.size() == layout.sizes.size(), "sizes and strides differ in length");
    for (const auto size : layout.sizes) require(size >= 0, "a size is negative");
    for (const auto stride : layout.strides) require(stride >= 0, "a stride is negative");
    require(saved.storage_offset >= 0, "storage_offset is negative");
  }

  void check_event(const Event& event) {
    switch (event.kind) {
      case EventKind::kPhase:
        return require_index(event.id, program_.names.size(), "name");
      case EventKind::kOpBegin:
        return begin_op(event.id);
      case EventKind::kOpEnd:
        return end_op(event.id);
      case EventKind::kAlloc:
        return alloc(event.id);
      case EventKind::kFreeRequested:
        return request_free(event.id);
      case EventKind::kFree:
        return free(event.id);
      case EventKind::kPack:
        return pack(event.id);
      case EventKind::kUnpack:
        return unpack(event.id);
      case EventKind::kRelease:
        return release(event.id);
      case EventKind::kFreeUnpacked:
        return free_unpacked(event.id);
      case EventKind::kFetch:
        copy_weights(event.id);
        fetched_.insert(event.id);
        return;
      case EventKind::kSave:
        return copy_weights(event.id);
      case EventKind::kFetched:
        return fetched(event.id);
      case EventKind::kNodeEnd:
        end_node();
        [[fallthrough]];
      case EventKind::kBackwardEnd:
        return require(event.id == 0, "its id is not 0");
    }
  }

  void begin_op(std::int32_t name) {
    require_index(name, program_.names.size(), "name");
    open_ops_.push_back(name);
  }

  void end_op(std::int32_t name) {
    require(!open_ops_.empty() && open_ops_.back() == name, "ends an operator that is not open");
    open_ops_.pop_back();
  }

  bool is_older_than_step(std::size_t storage) const {
    return offprof::is_older_than_step(program_.storages[storage].role);
  }

  void alloc(std::int32_t id) {
    require_index(id, storages_.size(), "storage");
    require(storages_[id] == StorageState::kNew, "allocates a storage for the second time");
    storages_[id] = StorageState::kLive;
  }

  void request_free(std::int32_t id) {
    require_index(id, storages_.size(), "storage");
    require(storages_[id] == StorageState::kLive ||
                (storages_[id] == StorageState::kNew && is_older_than_step(id)),
            "requests to free a storage that does not exist");
    require(requested_.insert(id).second, "requests to free a storage for the second time");
  }

  void free(std::int32_t id) {
    require_index(id, storages_.size(), "storage");
    require(storages_[id] != StorageState::kFreed, "frees a storage for the second time");
    require(storages_[id] == StorageState::kLive || is_older_than_step(id),
            "frees a storage before its allocation");
    storages_[id] = StorageState::kFreed;
  }

  void copy_weights(std::int32_t id) {
    require_index(id, storages_.size(), "storage");
    require(storages_[id] == StorageState::kLive, "copies parameters of a storage that does not exist");
  }

  void fetched(std::int32_t id) {
    require_index(id, storages_.size(), "storage");
    require(fetched_.contains(id), "waits for a copy that has not begun");
  }

  void pack(std::int32_t id) {
    require_index(id, saved_.size(), "saved tensor");
    if (id != packed_) fail(fmt::format("packs saved tensor {}, but {} is next", id, packed_));
    ++packed_;
    const std::int32_t storage = program_.saved[id].storage;
    const bool is_there =
        storage < 0 || storages_[storage] != StorageState::kNew || is_older_than_step(storage);
    require(is_there, "packs a tensor before the allocation of its storage");
    saved_[id].state = SavedState::kPacked;
  }

  void unpack(std::int32_t id) {
    require_index(id, saved_.size(), "saved tensor");
    require(saved_[id].state != SavedState::kNew, "unpacks a tensor before its pack");
    require(saved_[id].state != SavedState::kReleased, "unpacks a tensor after its release");
    saved_[id].held = true;
    node_tensors_.push_back(id);
  }

  void end_node() {
    for (const std::int32_t id : node_tensors_)
      if (!program_.saved[id].escapes) saved_[id].held = false;
    node_tensors_.clear();
  }

  void release(std::int32_t id) {
    require_index(id, saved_.size(), "saved tensor");
    require(saved_[id].state != SavedState::kNew, "releases a tensor before its pack");
    require(saved_[id].state != SavedState::kReleased, "releases a tensor for the second time");
    saved_[id].state = SavedState::kReleased;
  }

  void free_unpacked(std::int32_t id) {
    require_index(id, saved_.size(), "saved tensor");
    if (!program_.saved[id].escapes)
      require(saved_[id].held,
              "drops a tensor that does not escape, but not between its unpack and the end of its node");
    require(saved_[id].held, "drops a tensor before its unpack, or for the second time");
    saved_[id].held = false;
  }

  void check_end() const {
    const auto message = [&](std::string_view what) {
      return input_error(fmt::format("{}.events: {}", where_, what), "Record the trace again.");
    };
    if (!open_ops_.empty()) throw message("an operator does not end");
    if (static_cast<std::size_t>(packed_) == saved_.size()) return;
    throw message(fmt::format("{} of {} saved tensors are packed", packed_, saved_.size()));
  }

  const StepProgram& program_;
  const std::string& where_;
  std::string_view part_;
  std::size_t index_ = 0;
  std::vector<StorageState> storages_;
  std::vector<Saved> saved_;
  std::vector<std::int32_t> open_ops_;
  std::vector<std::int32_t> node_tensors_;  ///< unpacked since the last kNodeEnd
  std::int32_t packed_ = 0;
  std::unordered_set<std::int32_t> fetched_;    ///< storages that parameters were copied into
  std::unordered_set<std::int32_t> requested_;  ///< frees
};

}  // namespace

void check_program(const StepProgram& program, const std::string& where) {
  ProgramCheck(program, where).run();
}

}  // namespace offprof
