#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace offprof {

/// A value that holds from `at` until the next sample.
struct ChartSample {
  std::int64_t at = 0;
  std::int64_t value = 0;
};

/// A label below the chart where something begins.
struct ChartMark {
  std::int64_t at = 0;
  std::string label;
};

struct Chart {
  std::vector<ChartSample> samples;  ///< by rising `at`
  std::int64_t end = 0;              ///< where the last sample ends
  std::vector<ChartMark> marks;
  std::function<std::string(std::int64_t)> format_value;
};

/// An area chart of block characters, `height` lines high and as wide as the page: value axis on the left
/// from 0 to the highest value, below it the marks. A column shows the highest value of its stretch, so that
/// a peak is never lost.
std::string draw_chart(const Chart& chart, std::size_t height, const Page& page);

}  // namespace offprof
