#include "engine/slices/plan/slice_plan.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "traces/base/check.h"

namespace offprof {
namespace {

/// Maximum number of places where a slice may begin; if there are more, those with the smallest boundary are
/// taken. A plan takes time proportional to the third power of this.
constexpr std::size_t kMostBeginnings = 512;

/// Cost of a plan, compared lexicographically.
struct Price {
  Bytes largest_bytes = std::numeric_limits<Bytes>::max(), boundary_bytes = 0;
  bool operator==(const Price&) const = default;
  bool is_below(const Price& other) const {
    return std::tie(largest_bytes, boundary_bytes) < std::tie(other.largest_bytes, other.boundary_bytes);
  }
};

std::vector<std::size_t> beginnings_of(const PieceCosts& costs) {
  const auto boundary = [&](std::size_t piece) { return costs.pieces[piece].boundary_bytes; };
  std::vector<std::size_t> beginnings;
  for (std::size_t i = 1; i < costs.pieces.size(); ++i)
    if (costs.pieces[i].can_begin_a_slice) beginnings.push_back(i);
  if (beginnings.size() >= kMostBeginnings) {
    std::ranges::stable_sort(beginnings, {}, boundary);
    beginnings.resize(kMostBeginnings - 1);
    std::ranges::sort(beginnings);
  }
  beginnings.insert(beginnings.begin(), 0);
  return beginnings;
}

/// Finds the cheapest plan for each number of slices, by dynamic programming over the last slice.
class Planner {
 public:
  explicit Planner(const PieceCosts& costs) : costs_(costs), beginnings_(beginnings_of(costs)) {
    const std::size_t count = beginnings_.size();
    bytes_.assign(count, std::vector<Bytes>(count + 1, 0));
    for (std::size_t from = 0; from < count; ++from) weigh(from);
    prices_.assign(count + 1, std::vector<Price>(count + 1));
    last_.assign(count + 1, std::vector<std::size_t>(count + 1, 0));
    prices_[0][0] = {0, 0};
  }

  /// Computes all plans with `slices` slices from those with one slice less.
  void add(std::size_t slices) {
    for (std::size_t to = slices; to <= beginnings_.size(); ++to)
      for (std::size_t from = slices - 1; from < to; ++from) try_last(slices, from, to);
  }

  Price price(std::size_t slices) const { return prices_[slices][beginnings_.size()]; }

  SlicePlan plan(std::size_t slices) const {
    SlicePlan plan{{}, price(slices).largest_bytes, price(slices).boundary_bytes};
    for (std::size_t to = beginnings_.size(); slices > 0; --slices) {
      to = last_[slices][to];
      plan.first_pieces.insert(plan.first_pieces.begin(), beginnings_[to]);
    }
    return plan;
  }

 private:
  /// Computes the bytes of the slices that begin at `from`, for each end.
  void weigh(std::size_t from) {
    Bytes bytes = boundary(from);
    std::set<std::int64_t> seen;
    for (std::size_t to = from + 1; to <= beginnings_.size(); ++to) {
      const std::size_t end = to < beginnings_.size() ? beginnings_[to] : costs_.pieces.size();
      for (std::size_t i = beginnings_[to - 1]; i < end; ++i) {
        bytes += costs_.pieces[i].saved_bytes;
        for (const PieceCosts::Weight& weight : costs_.pieces[i].parameters)
          if (seen.insert(weight.id).second) bytes += weight.bytes;
      }
      bytes_[from][to] = bytes;
    }
  }

  void try_last(std::size_t slices, std::size_t from, std::size_t to) {
    const Price& before = prices_[slices - 1][from];
    if (before == Price()) return;
    const Price price{std::max(before.largest_bytes, bytes_[from][to]),
                      before.boundary_bytes + boundary(from)};
    if (!price.is_below(prices_[slices][to])) return;
    prices_[slices][to] = price;
    last_[slices][to] = from;
  }

  Bytes boundary(std::size_t beginning) const { return costs_.pieces[beginnings_[beginning]].boundary_bytes; }

  const PieceCosts& costs_;
  std::vector<std::size_t> beginnings_;     ///< indices of pieces
  std::vector<std::vector<Bytes>> bytes_;   ///< of the slice from one beginning to another, or to the end
  std::vector<std::vector<Price>> prices_;  ///< by number of slices, by the beginning where they end
  /// Beginning of the last slice, for the indices of prices_.
  std::vector<std::vector<std::size_t>> last_;
};

}  // namespace

std::size_t most_slices(const PieceCosts& costs) {
  return beginnings_of(costs).size();
}

SlicePlan plan_slices(const PieceCosts& costs, std::optional<std::size_t> count) {
  const std::size_t most = most_slices(costs);
  OFFPROF_CHECK(!count || (*count >= 1 && *count <= most));
  Planner planner(costs);
  std::size_t best = 1;
  const auto total = [&](std::size_t slices) {
    return planner.price(slices).largest_bytes + planner.price(slices).boundary_bytes;
  };
  for (std::size_t slices = 1; slices <= count.value_or(most); ++slices) {
    planner.add(slices);
    if (count || total(slices) < total(best)) best = slices;
  }
  return planner.plan(best);
}

}  // namespace offprof
