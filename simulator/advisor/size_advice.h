#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "simulator/advisor/advice.h"
#include "simulator/advisor/advise.h"

namespace offprof {

/// A way to run the step, at the largest size (batch or sequence length) at which it is within the limits.
struct SizedWay {
  Way way;
  std::int64_t size = 0;      ///< 0: no size is within the limits
  std::int64_t way_size = 0;  ///< of `way`: `size`, or else the largest that fits the memory, or else 1
  /// The next size could not be recorded, so that a larger one may fit.
  bool is_limited_by_recording = false;
};

/// Result of the search for the largest step.
struct SizeAdvice {
  AdviceGoal goal;
  std::int64_t present = 0;    ///< the program's own size
  Way nothing;                 ///< the program as it is, at its own size
  std::vector<SizedWay> ways;  ///< the one with the largest size first, of equal ones the fastest
  std::vector<UnrecordedConfiguration> unrecorded;
  std::size_t recordings = 0;  ///< number of recordings, without the confirming run
  std::size_t replayed = 0;    ///< number of simulated policies
};

/// Records steps of any size.
class SizedStepRecorder : public StepRecorder {
 public:
  /// Returns the program's own size. It is called after the program was recorded. Throws Error (input) if the
  /// program has no such size.
  virtual std::int64_t present_size() const = 0;
  /// Returns how many steps `record` records at the same time.
  virtual std::size_t runs_at_once() const = 0;
};

/// Begin of what advise_size says to its progress function when it goes to the next way.
inline constexpr std::string_view kSearchingSize = "searching the largest size";

/// Searches the largest size of the step that fits into the memory, for each way by itself and for mixtures.
/// With a slowdown limit, the time per size is limited to that of the program at its own size with nothing
/// done. A largest size is exact: it was recorded and fits, and the next one was recorded and does not.
/// Throws Error (input) as advise does.
SizeAdvice advise_size(SizedStepRecorder& recorder, const AdviceRequest& request,
                       const std::function<void(const std::string&)>& progress);

}  // namespace offprof
