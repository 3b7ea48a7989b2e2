#include "cli/terminal/chart.h"

#include <algorithm>
#include <array>

namespace offprof {
namespace {

constexpr std::size_t kChartIndent = 2;
constexpr std::int64_t kEighths = 8;
constexpr std::array<const char*, kEighths + 1> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::size_t kNarrowestPlot = 10;

/// Returns the column that contains `at`.
std::size_t column_of(std::int64_t at, const Chart& chart, std::size_t width) {
  const double begin = static_cast<double>(chart.samples.front().at);
  const double span = std::max(1.0, static_cast<double>(chart.end) - begin);
  const double share = (static_cast<double>(at) - begin) / span;
  const auto column = static_cast<std::size_t>(std::max(0.0, share) * static_cast<double>(width));
  return std::min(column, width - 1);
}

std::vector<std::int64_t> column_peaks(const Chart& chart, std::size_t width) {
  std::vector<std::int64_t> peaks(width, 0);
  for (std::size_t i = 0; i < chart.samples.size(); ++i) {
    const bool last = i + 1 == chart.samples.size();
    const std::int64_t end = last ? chart.end : chart.samples[i + 1].at;
    const std::size_t to = column_of(std::max(end - 1, chart.samples[i].at), chart, width);
    for (std::size_t column = column_of(chart.samples[i].at, chart, width); column <= to; ++column) {
      peaks[column] = std::max(peaks[column], chart.samples[i].value);
    }
  }
  return peaks;
}

/// Returns `value` in eighths of a line, for a chart of `height` lines. A value above zero gives at least one
/// eighth, so that it is visible.
std::int64_t eighths_of(std::int64_t value, std::int64_t highest, std::size_t height) {
  if (value <= 0) return 0;
  const double share = static_cast<double>(value) / static_cast<double>(highest);
  const auto eighths = static_cast<std::int64_t>(share * static_cast<double>(height) * kEighths);
  return std::max<std::int64_t>(1, eighths);
}

std::string plot_line(const std::vector<std::int64_t>& levels, std::int64_t floor) {
  std::string line;
  for (std::int64_t level : levels) line += kBlocks[std::clamp<std::int64_t>(level - floor, 0, kEighths)];
  return line;
}

/// Returns the line of the marks' labels. Each label is to the right of its mark, or to the left if it would
/// not fit into the line. A label that would touch the previous one is left out.
std::string mark_line(const Chart& chart, std::size_t width) {
  std::string line;
  for (const ChartMark& mark : chart.marks) {
    const std::size_t column = column_of(mark.at, chart, width);
    const std::size_t label_width = display_width(mark.label) + 2;
    const bool behind = column + label_width <= width;
    const std::string label = behind ? "└ " + mark.label : mark.label + " ┘";
    const std::size_t used = display_width(line);
    const std::size_t begin = behind ? column : column + 1 - std::min(column + 1, label_width);
    if (used > 0 && begin < used + 1) continue;
    line.append(begin - used, ' ').append(label);
  }
  return line;
}

std::string pad_left(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, display_width(text)), ' ') + text;
}

/// Returns the labels of the value axis: the highest value on top, half of it in the middle, 0 at the bottom.
std::vector<std::string> axis_labels(const Chart& chart, std::int64_t highest, std::size_t height) {
  std::vector<std::string> labels(height);
  labels[0] = chart.format_value(highest);
  if (height >= 4) labels[height / 2] = chart.format_value(highest / 2);
  if (height >= 2) labels[height - 1] = chart.format_value(0);
  return labels;
}

}  // namespace

std::string draw_chart(const Chart& chart, std::size_t height, const Page& page) {
  if (chart.samples.empty() || height == 0) return {};
  const std::int64_t highest =
      std::max<std::int64_t>(1, std::ranges::max(chart.samples, {}, &ChartSample::value).value);
  const std::vector<std::string> labels = axis_labels(chart, highest, height);
  std::size_t label_width = 0;
  for (const std::string& label : labels) label_width = std::max(label_width, display_width(label));
  const std::size_t margin = kChartIndent + label_width + 2;
  const std::size_t width = page.width > margin + kNarrowestPlot ? page.width - margin : kNarrowestPlot;

  std::vector<std::int64_t> levels;
  for (std::int64_t peak : column_peaks(chart, width)) levels.push_back(eighths_of(peak, highest, height));
  std::string text;
  for (std::size_t row = 0; row < height; ++row) {
    const auto floor = static_cast<std::int64_t>(height - 1 - row) * kEighths;
    std::string line = std::string(kChartIndent, ' ') + pad_left(labels[row], label_width);
    line += labels[row].empty() ? " │" : " ┤";
    line += plot_line(levels, floor);
    text += line.erase(line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string marks = mark_line(chart, width);
  return marks.empty() ? text : text + std::string(margin, ' ') + marks + "\n";
}

}  // namespace offprof
