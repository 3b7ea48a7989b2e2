#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "traces/base/units.h"

namespace offprof {

/// Kind of a call.
enum class SiteKind : std::uint8_t {
  kKernel,
  kD2hCopy,
  kH2dCopy,
  kD2dCopy,
  kH2hCopy,
  kSet,
  kEventCreated,
  kEventRecorded,
  kStreamWaits,
  kEventSynchronised,
  kEventTimeAsked,
  kBlockAllocated,
  kBlockFreed,
  kUnmapped,
  kPinnedFreed,
};

/// A call as hazards name it. The texts are built only when there is a hazard.
struct StreamSite {
  SiteKind kind{};
  std::int32_t stream = kNoStream;
  const std::string* name = nullptr;  ///< name of the kernel
  const std::string* op = nullptr;    ///< nullptr: outside any operator
  Bytes bytes = 0;                    ///< 0: the call has no memory, or its size is not known

  static constexpr std::int32_t kNoStream = -1;
};

/// Returns a text such as `kernel gelu in aten::gelu on stream 0`.
std::string to_text(const StreamSite& site);

/// Keeps one copy of each text.
class TextPool {
 public:
  /// Returns the pool's copy of the text, which lives as long as the pool; nullptr for the empty text.
  const std::string* get(std::string_view text);

 private:
  std::set<std::string, std::less<>> texts_;
};

enum class HazardKind : std::uint8_t {
  kReadsWhatMayBeWritten,
  kWritesWhatMayBeUsed,
  kGivenBackUnderCopy,
  kHandedOutUnderCopy,
  kCopiesOverlap,
  kPinnedReusedUnderCopy,
  kPinnedFreedUnderCopy,
  kUnmappedUnderCopy,
  kNeverRecorded,
  kNeedlessWait,
};

/// Collects hazards, each pair of sites once. Sites that differ only in bytes and addresses are the same.
class HazardLog {
 public:
  void add(HazardKind kind, const StreamSite& first, const StreamSite& second);
  std::vector<StreamHazard> take();

 private:
  using SiteKey = std::tuple<SiteKind, std::int32_t, const std::string*, const std::string*>;
  static SiteKey key(const StreamSite& site) { return {site.kind, site.stream, site.name, site.op}; }

  std::set<std::tuple<HazardKind, SiteKey, SiteKey>> seen_;
  std::vector<StreamHazard> hazards_;
};

}  // namespace offprof
