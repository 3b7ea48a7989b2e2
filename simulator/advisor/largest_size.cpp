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

/// Returns `count` sizes from `first` to `last`, evenly spread.
std::vector<std::int64_t> spread(std::int64_t first, std::int64_t last, std::size_t count) {
  const std::int64_t gaps = static_cast<std::int64_t>(count) - 1;
  if (gaps == 0) return {(first + last) / 2};
  std::vector<std::int64_t> sizes;
  for (std::int64_t i = 0; i <= gaps; ++i) sizes.push_back(first + (last - first) * i / gaps);
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

class LargestSize {
 public:
  LargestSize(Bytes most, std::size_t at_once, const TakenBytes& taken)
      : most_(most), at_once_(std::max<std::size_t>(at_once, 1)), taken_(taken) {}

  std::int64_t search(std::int64_t guess) {
    const std::int64_t first = std::clamp<std::int64_t>(guess, 1, kMostSize);
    attempt(at_once_ > 1 && first < kMostSize ? std::vector{first, std::min(first * kGrowth, kMostSize)}
                                              : std::vector{first});
    while (!high_ && low_.size < kMostSize) {
      const std::int64_t last = std::min(above(), kMostSize);
      attempt(at_once_ > 1 && last > low_.size + 1 ? std::vector{last - 1, last} : std::vector{last});
    }
    for (int round = 1; high_ && high_->size - low_.size > 1; ++round) attempt(between(round));
    return low_.size;
  }

 private:
  /// Tries the sizes, which ascend.
  void attempt(const std::vector<std::int64_t>& sizes) {
    const std::vector<std::optional<Bytes>> taken = taken_(sizes);
    for (std::size_t i = 0; i < sizes.size(); ++i) note({sizes[i], taken[i]});
  }

  void note(const KnownSize& known) {
    if (high_ && known.size >= high_->size) {
      if (!beyond_ || known.size < beyond_->size) beyond_ = known;
    } else if (known.taken && *known.taken <= most_) {
      below_ = low_;
      low_ = known;
    } else {
      beyond_ = high_;
      high_ = known;
    }
  }

  /// Returns the next sizes between the one that fits and the one that does not.
  std::vector<std::int64_t> between(int round) const {
    constexpr int kRoundsPerSpread = 3;
    constexpr std::int64_t kPartsOfWindow = 8;
    const std::int64_t first = low_.size + 1, last = high_->size - 1, width = high_->size - low_.size;
    const auto most = static_cast<std::int64_t>(at_once_);
    if (width - 1 <= most) return spread(first, last, static_cast<std::size_t>(width - 1));
    if (round % kRoundsPerSpread == 0)
      return spread(low_.size + width / (most + 1), high_->size - width / (most + 1), at_once_);
    const std::int64_t middle = interpolated(), window = width / kPartsOfWindow;
    if (at_once_ == 1) return {middle};
    if (round == 1 || window <= 1) return spread(middle, std::min(middle + 1, last), 2);
    return spread(std::max(middle - window, first), std::min(middle + window, last), at_once_);
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

  std::int64_t interpolated() const {
    std::optional<double> estimate;
    if (low_.size > 0)
      estimate = crossing(low_, *high_, most_);
    else if (beyond_)
      estimate = crossing(*high_, *beyond_, most_);
    const double size = estimate ? std::floor(*estimate) : static_cast<double>(low_.size + high_->size) / 2;
    return std::clamp(static_cast<std::int64_t>(size), low_.size + 1, high_->size - 1);
  }

  Bytes most_;
  std::size_t at_once_;
  const TakenBytes& taken_;
  KnownSize below_, low_;                   ///< the two largest known sizes that fit
  std::optional<KnownSize> high_, beyond_;  ///< the two smallest known sizes that do not
};

}  // namespace

std::int64_t largest_size(std::int64_t guess, Bytes most, std::size_t at_once, const TakenBytes& taken) {
  return LargestSize(most, at_once, taken).search(guess);
}

}  // namespace offprof
