#include "simulator/advisor/largest_size.h"

#include <algorithm>
#include <cmath>

namespace offprof {
namespace {

/// Growth from a size that fits to the next one that is tried, while none is known that does not fit and two
/// sizes give no better estimate.
constexpr std::int64_t kGrowth = 2;

struct KnownSize {
  std::int64_t size = 0;
  std::optional<Bytes> taken{};
};

/// Returns the size at which a straight line through both sizes reaches `most`; nullopt: there is none.
std::optional<double> crossing(const KnownSize& a, const KnownSize& b, Bytes most) {
  if (!a.taken || !b.taken || *a.taken >= *b.taken) return std::nullopt;
  const double slope = static_cast<double>(*b.taken - *a.taken) / static_cast<double>(b.size - a.size);
  return static_cast<double>(a.size) + static_cast<double>(most - *a.taken) / slope;
}

class LargestSize {
 public:
  LargestSize(Bytes most, const std::function<std::optional<Bytes>(std::int64_t)>& taken)
      : most_(most), taken_(taken) {}

  std::int64_t search(std::int64_t guess) {
    attempt(std::clamp<std::int64_t>(guess, 1, kMostSize));
    while (!high_ && low_.size < kMostSize) attempt(std::min(above(), kMostSize));
    for (int round = 1; high_ && high_->size - low_.size > 1; ++round)
      attempt(round % 3 == 0 ? (low_.size + high_->size) / 2 : between());
    return low_.size;
  }

 private:
  void attempt(std::int64_t size) {
    const KnownSize known{size, taken_(size)};
    if (known.taken && *known.taken <= most_) {
      below_ = low_;
      low_ = known;
    } else {
      beyond_ = high_;
      high_ = known;
    }
  }

  /// Returns a size above the largest that fits: just beyond the estimate, so that it hardly fits.
  std::int64_t above() const {
    const std::int64_t doubled = low_.size * kGrowth;
    const auto estimate = crossing(below_, low_, most_);
    if (!estimate) return doubled;
    constexpr double kMostGrowth = 64;
    const double most = static_cast<double>(low_.size) * kMostGrowth;
    return std::max(low_.size + 1, static_cast<std::int64_t>(std::min(*estimate, most)) + 1);
  }

  std::int64_t between() const {
    std::optional<double> estimate;
    if (low_.size > 0)
      estimate = crossing(low_, *high_, most_);
    else if (beyond_)
      estimate = crossing(*high_, *beyond_, most_);
    const double size = estimate ? std::floor(*estimate) : static_cast<double>(low_.size + high_->size) / 2;
    return std::clamp(static_cast<std::int64_t>(size), low_.size + 1, high_->size - 1);
  }

  Bytes most_;
  const std::function<std::optional<Bytes>(std::int64_t)>& taken_;
  KnownSize below_, low_;                   ///< the two largest known sizes that fit
  std::optional<KnownSize> high_, beyond_;  ///< the two smallest known sizes that do not
};

}  // namespace

std::int64_t largest_size(std::int64_t guess, Bytes most,
                          const std::function<std::optional<Bytes>(std::int64_t)>& taken) {
  return LargestSize(most, taken).search(guess);
}

}  // namespace offprof
