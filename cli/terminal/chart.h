#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"

namespace offprof {

/// A value that holds from `at` until the next sample.
struct ChartSample {
  std::int64_t at = 0;
  std::int64_t value = 0;
};

/// A label below the chart that marks where something begins.
struct ChartMark {
  std::int64_t at = 0;
  std::string label;
};

struct Chart {
  std::vector<ChartSample> samples;  ///< in ascending order of `at`
  std::int64_t end = 0;              ///< the end of the last sample
  std::vector<ChartMark> marks;
  std::function<std::string(std::int64_t)> format_value;
};

/// Draws an area chart with block characters, `height` lines high and as wide as the page. The value axis on
/// the left goes from 0 to the highest value; the marks are below the chart. Each column shows the highest
/// value of its interval, so that no peak is lost.
std::string draw_chart(const Chart& chart, std::size_t height, const Page& page);

}  // namespace offprof
