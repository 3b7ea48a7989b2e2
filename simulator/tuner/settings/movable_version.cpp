#include "simulator/tuner/settings/movable_version.h"

#include <algorithm>
#include <numeric>

#include "engine/scheduler/copy_index.h"

namespace offprof {
namespace {

/// Returns, by saved tensor, the first event of a kind.
std::vector<std::size_t> first_events(const Step& step, EventKind kind) {
  std::vector<std::size_t> first(step.requests().size(), kNoEvent);
  for (std::size_t i = step.events().size(); i-- > 0;)
    if (step.events()[i].kind == kind) first[static_cast<std::size_t>(step.events()[i].id)] = i;
  return first;
}

/// kNoEvent is the largest index: if one tensor lacks the event, so does the version.
std::size_t last_of(const std::vector<SavedId>& tensors, const std::vector<std::size_t>& events) {
  std::size_t last = 0;
  for (const SavedId tensor : tensors) last = std::max(last, events[static_cast<std::size_t>(tensor)]);
  return last;
}

}  // namespace

std::vector<MovableVersion> movable_versions(const Step& step) {
  std::vector<MovableVersion> versions;
  CopyIndex index;
  for (std::size_t e = 0; e < step.events().size(); ++e) {
    const Event& event = step.events()[e];
    if (event.kind != EventKind::kPack) continue;
    const PackRequest& request = step.requests()[static_cast<std::size_t>(event.id)];
    if (request.movability != Movability::kMovable) continue;
    const StorageVersion content{request.storage, request.version};
    CopyId found = index.find(content);
    if (found == CopyIndex::kNone) {
      index.add(content);
      found = static_cast<CopyId>(versions.size());
      versions.push_back({request.storage, request.storage_bytes, {}, e});
    }
    versions[static_cast<std::size_t>(found)].tensors.push_back(event.id);
  }
  const auto unpacks = first_events(step, EventKind::kUnpack);
  const auto releases = first_events(step, EventKind::kRelease);
  for (MovableVersion& version : versions) {
    version.last_first_unpack = last_of(version.tensors, unpacks);
    version.last_release = last_of(version.tensors, releases);
  }
  return versions;
}

std::vector<Bytes> sizes_of(const std::vector<MovableVersion>& versions, Bytes threshold) {
  return sizes_where(versions, [&](std::size_t v) { return versions[v].bytes >= threshold; });
}

std::vector<Bytes> distinct_sizes(const std::vector<MovableVersion>& versions, Bytes threshold) {
  std::vector<Bytes> sizes = sizes_of(versions, threshold);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

Bytes sum_of(const std::vector<Bytes>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), Bytes{0});
}

}  // namespace offprof
