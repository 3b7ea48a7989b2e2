#include "simulator/tuner/settings/divergence.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/scheduler/copy_index.h"

namespace offprof {
namespace {

constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

bool names(const Policy& policy, SavedId tensor) {
  return !policy.tensors || std::binary_search(policy.tensors->begin(), policy.tensors->end(), tensor);
}

bool may_move(const PackRequest& request) {
  return request.movability == Movability::kMovable;
}

/// Copies that neither policy's stash refuses: at most this many, with this many bytes in total.
struct StashRoom {
  StashRoom(const Policy& a, const Policy& b) {
    for (const Policy* policy : {&a, &b}) {
      const bool has_stash = policy->stash_count || policy->stash_bytes;
      copies = std::min(copies, has_stash ? policy->stash_count.value_or(kNoLimit) : 0);
      bytes = std::min(bytes, policy->stash_bytes.value_or(kNoLimit));
    }
  }
  std::int64_t copies = kNoLimit;
  Bytes bytes = kNoLimit;
};

}  // namespace

Divergence::Divergence(const Step& step)
    : step_(step),
      pack_event_(step.requests().size(), step.events().size()),
      same_content_(step.requests().size(), -1),
      first_unpack_(step.events().size()) {
  for (std::size_t i = step.events().size(); i-- > 0;) {
    const Event& event = step.events()[i];
    if (event.kind == EventKind::kUnpack) first_unpack_ = i;
    if (event.kind == EventKind::kPack) pack_event_[static_cast<std::size_t>(event.id)] = i;
  }
  note_same_contents();
}

/// Visits the saves in order.
void Divergence::note_same_contents() {
  CopyIndex contents;
  std::vector<SavedId> last;  // by content: the tensor saved last
  for (const Event& event : step_.events()) {
    if (event.kind != EventKind::kPack) continue;
    const PackRequest& request = step_.requests()[static_cast<std::size_t>(event.id)];
    if (!may_move(request)) continue;
    const StorageVersion content{request.storage, request.version};
    const CopyId known = contents.find(content);
    if (known != CopyIndex::kNone) {
      same_content_[static_cast<std::size_t>(event.id)] = std::exchange(last[known], event.id);
      continue;
    }
    contents.add(content);
    last.push_back(event.id);
  }
}

std::size_t Divergence::operator()(const Policy& a, const Policy& b) const {
  if (a.scheduler != SchedulerKind::kOffload || b.scheduler != SchedulerKind::kOffload) return 0;
  if (a.copy_streams != b.copy_streams || a.host_memory_bytes != b.host_memory_bytes) return 0;
  if (a.disk_memory_bytes != b.disk_memory_bytes || a.disk_buffer_bytes != b.disk_buffer_bytes) return 0;
  const std::size_t packs_apart =
      event_of(std::min({apart_by_threshold(a, b), apart_by_plan(a, b), apart_by_stash(a, b)}));
  return a.prefetch_bytes == b.prefetch_bytes ? packs_apart : std::min(packs_apart, first_unpack_);
}

std::size_t Divergence::event_of(SavedId tensor) const {
  return tensor == no_tensor() ? step_.events().size() : pack_event_[static_cast<std::size_t>(tensor)];
}

SavedId Divergence::apart_by_threshold(const Policy& a, const Policy& b) const {
  if (a.threshold_bytes == b.threshold_bytes) return no_tensor();
  const Bytes at_a = a.threshold_bytes.value_or(kNoLimit), at_b = b.threshold_bytes.value_or(kNoLimit);
  const auto [low, high] = std::minmax(at_a, at_b);
  const auto requests = step_.requests();
  const auto lies_between = [from = low, to = high](const PackRequest& request) {
    return may_move(request) && request.storage_bytes >= from && request.storage_bytes < to;
  };
  return static_cast<SavedId>(std::find_if(requests.begin(), requests.end(), lies_between) -
                              requests.begin());
}

SavedId Divergence::apart_by_plan(const Policy& a, const Policy& b) const {
  if (!a.tensors && !b.tensors) return no_tensor();
  if (a.tensors && b.tensors) {
    const auto [in_a, in_b] =
        std::mismatch(a.tensors->begin(), a.tensors->end(), b.tensors->begin(), b.tensors->end());
    return std::min({no_tensor(), in_a == a.tensors->end() ? no_tensor() : *in_a,
                     in_b == b.tensors->end() ? no_tensor() : *in_b});
  }
  SavedId tensor = 0;
  while (tensor < no_tensor() && names(a, tensor) && names(b, tensor)) ++tensor;
  return tensor;
}

/// The same tensors move up to this point. The stash holds at most the copies made so far, each content once.
/// As long as all of them fit, neither limit refuses any.
SavedId Divergence::apart_by_stash(const Policy& a, const Policy& b) const {
  if (a.stash_count == b.stash_count && a.stash_bytes == b.stash_bytes) return no_tensor();
  const StashRoom room(a, b);
  std::int64_t copies = 0;
  Bytes bytes = 0;
  for (SavedId tensor = 0; tensor < no_tensor(); ++tensor) {
    const PackRequest& request = step_.requests()[static_cast<std::size_t>(tensor)];
    const SavedId before = same_content_[static_cast<std::size_t>(tensor)];
    const bool moves = may_move(request) && request.storage_bytes >= a.threshold_bytes.value_or(kNoLimit) &&
                       names(a, tensor);
    if (!moves || (before >= 0 && names(a, before))) continue;
    bytes += request.storage_bytes;
    if (++copies > room.copies || bytes > room.bytes) return tensor;
  }
  return no_tensor();
}

}  // namespace offprof
