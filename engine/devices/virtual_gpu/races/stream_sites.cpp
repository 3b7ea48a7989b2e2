#include "engine/devices/virtual_gpu/races/stream_sites.h"

#include <utility>

namespace offprof {
namespace {

std::string_view text_of(SiteKind kind) {
  switch (kind) {
    case SiteKind::kKernel:
      return "kernel";
    case SiteKind::kD2hCopy:
      return "D2H copy";
    case SiteKind::kH2dCopy:
      return "H2D copy";
    case SiteKind::kD2dCopy:
      return "D2D copy";
    case SiteKind::kH2hCopy:
      return "H2H copy";
    case SiteKind::kSet:
      return "memset";
    case SiteKind::kEventCreated:
      return "event creation";
    case SiteKind::kEventRecorded:
      return "event record";
    case SiteKind::kStreamWaits:
      return "event wait";
    case SiteKind::kEventSynchronised:
      return "event synchronisation";
    case SiteKind::kEventTimeAsked:
      return "event time query";
    case SiteKind::kBlockAllocated:
      return "block allocation";
    case SiteKind::kBlockFreed:
      return "block free";
    case SiteKind::kUnmapped:
      return "unmapping device memory";
    case SiteKind::kPinnedFreed:
      return "freeing pinned memory";
  }
  return {};
}

std::string text_of(HazardKind kind) {
  switch (kind) {
    case HazardKind::kReadsWhatMayBeWritten:
      return "a copy reads a block that a stream may still write";
    case HazardKind::kWritesWhatMayBeUsed:
      return "a copy writes a block whose memory a stream may still use";
    case HazardKind::kGivenBackUnderCopy:
      return "a block is freed while a copy may still access it";
    case HazardKind::kHandedOutUnderCopy:
      return "a block is allocated while a copy may still access it";
    case HazardKind::kCopiesOverlap:
      return "two copies of the same memory are not ordered";
    case HazardKind::kPinnedReusedUnderCopy:
      return "pinned memory is reused during a copy";
    case HazardKind::kPinnedFreedUnderCopy:
      return "pinned memory is freed during a copy";
    case HazardKind::kUnmappedUnderCopy:
      return "device memory is unmapped during a copy";
    case HazardKind::kNeverRecorded:
      return "an event is used before it was recorded";
    case HazardKind::kNeedlessWait:
      return "a wait orders nothing";
  }
  return {};
}

}  // namespace

std::string to_text(const StreamSite& site) {
  std::string text(text_of(site.kind));
  if (site.name != nullptr) text += " " + *site.name;
  if (site.bytes != 0) text += " of " + std::to_string(site.bytes) + " bytes";
  if (site.op != nullptr) text += " in " + *site.op;
  if (site.stream != StreamSite::kNoStream) text += " on stream " + std::to_string(site.stream);
  return text;
}

const std::string* TextPool::get(std::string_view text) {
  if (text.empty()) return nullptr;
  const auto found = texts_.find(text);
  return found != texts_.end() ? &*found : &*texts_.emplace(text).first;
}

void HazardLog::add(HazardKind kind, const StreamSite& first, const StreamSite& second) {
  if (!seen_.emplace(kind, key(first), key(second)).second) return;
  hazards_.push_back({text_of(kind), to_text(first), to_text(second)});
}

std::vector<StreamHazard> HazardLog::take() {
  return std::exchange(hazards_, {});
}

}  // namespace offprof
