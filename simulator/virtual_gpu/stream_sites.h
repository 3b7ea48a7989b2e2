#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "simulator/virtual_gpu/virtual_gpu.h"
#include "traces/units.h"

namespace offprof {

/// What a call did.
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

/// A call, as a hazard names it. Texts are made only when there is a hazard.
struct StreamSite {
  SiteKind kind{};
  std::int32_t stream = kNoStream;
  const std::string* name = nullptr;  ///< a kernel's
  const std::string* op = nullptr;    ///< nullptr: outside any operator
  Bytes bytes = 0;                    ///< 0: is about no memory, or about how much is not known

  static constexpr std::int32_t kNoStream = -1;
};

/// `kernel gelu in aten::gelu on stream 0`.
std::string to_text(const StreamSite& site);

/// Keeps one copy of each text.
class TextPool {
 public:
  /// Lives as long as the pool; nullptr for the empty text.
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

/// Collects hazards, each pair of sites once: they are the same if only bytes and addresses differ.
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
