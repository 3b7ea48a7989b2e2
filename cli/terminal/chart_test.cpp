#include "cli/terminal/chart.h"

#include <gtest/gtest.h>

#include <sstream>

namespace offprof {
namespace {

Chart chart_of(std::vector<ChartSample> samples, std::int64_t end) {
  Chart chart;
  chart.samples = std::move(samples);
  chart.end = end;
  chart.format_value = [](std::int64_t value) { return std::to_string(value); };
  return chart;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Indent, one digit of label, blank and axis take 6 of 26 columns, so the plot has 20.
constexpr Page kPage{.width = 26, .color = false};

TEST(Chart, DrawsStepsAsBlocksAboveAnAxis) {
  const Chart chart = chart_of({{0, 4}, {10, 8}}, 20);
  EXPECT_EQ(draw_chart(chart, 2, {.width = 25}),
            "  8 ┤          ██████████\n"
            "  0 ┤████████████████████\n");
}

TEST(Chart, UsesEighthsOfALine) {
  const Chart chart = chart_of({{0, 1}, {10, 8}}, 20);
  EXPECT_EQ(draw_chart(chart, 1, {.width = 25}), "  8 ┤▁▁▁▁▁▁▁▁▁▁██████████\n");
}

TEST(Chart, NeverLosesAPeakThatIsNarrowerThanAColumn) {
  const Chart chart = chart_of({{0, 1}, {5000, 8}, {5001, 1}}, 10'000);
  const std::string top = lines_of(draw_chart(chart, 4, {.width = 25})).front();
  EXPECT_NE(top.find("█"), std::string::npos);
}

TEST(Chart, ShowsEveryValueAboveZero) {
  const Chart chart = chart_of({{0, 1}, {10, 1'000'000}}, 20);
  EXPECT_NE(lines_of(draw_chart(chart, 2, kPage)).back().find("▁"), std::string::npos);
}

TEST(Chart, StaysWithinThePage) {
  const Chart chart = chart_of({{0, 3}, {7, 9}, {11, 2}}, 15);
  for (std::size_t width = 40; width <= 120; ++width) {
    for (const std::string& line : lines_of(draw_chart(chart, 6, {.width = width}))) {
      EXPECT_LE(display_width(line), width);
    }
  }
}

TEST(Chart, MarksWherePhasesBegin) {
  Chart chart = chart_of({{0, 8}}, 20);
  chart.marks = {{0, "a"}, {10, "b"}, {19, "end"}};
  EXPECT_EQ(lines_of(draw_chart(chart, 1, {.width = 25})).back(), "     └ a       └ b  end ┘");
}

TEST(Chart, LeavesOutAMarkThatHasNoRoom) {
  Chart chart = chart_of({{0, 8}}, 20);
  chart.marks = {{0, "forward"}, {1, "backward"}};
  EXPECT_EQ(lines_of(draw_chart(chart, 1, {.width = 25})).back(), "     └ forward");
}

TEST(Chart, IsEmptyWithoutSamples) {
  EXPECT_EQ(draw_chart(chart_of({}, 0), 5, kPage), "");
}

TEST(Chart, DrawsASingleInstant) {
  EXPECT_EQ(draw_chart(chart_of({{0, 0}}, 0), 1, {.width = 25}), "  1 ┤\n");
}

}  // namespace
}  // namespace offprof
