#include "cli/terminal/text_table.h"

#include <algorithm>
#include <numeric>

#include "traces/base/check.h"

namespace offprof {
namespace {

constexpr std::size_t kIndent = 2;
constexpr std::size_t kGap = 2;
constexpr std::size_t kNarrowestCut = 6;

void trim_right(std::string& line) {
  line.erase(line.find_last_not_of(' ') + 1);
}

std::size_t total_width(const std::vector<std::size_t>& widths) {
  return std::accumulate(widths.begin(), widths.end(), kIndent + kGap * (widths.size() - 1));
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  OFFPROF_CHECK(!columns_.empty());
}

void TextTable::add_row(std::vector<Cell> cells) {
  OFFPROF_CHECK(cells.size() == columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() {
  rows_.emplace_back();
}

std::vector<std::size_t> TextTable::fitting_widths(std::size_t page_width) const {
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(display_width(column.heading));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], display_width(row[i].text));
  }
  while (total_width(widths) > page_width) {
    std::size_t* widest = nullptr;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (columns_[i].align == Align::kLeft && (widest == nullptr || widths[i] > *widest))
        widest = &widths[i];
    }
    if (widest == nullptr || *widest <= kNarrowestCut) break;
    --*widest;
  }
  return widths;
}

std::string TextTable::render_row(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                                  const Page& page) const {
  std::string line(kIndent, ' ');
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string text = cut_to_width(cells[i].text, widths[i]);
    const std::string padding(widths[i] - std::min(widths[i], display_width(text)), ' ');
    if (i > 0) line.append(kGap, ' ');
    if (columns_[i].align == Align::kRight) line += padding;
    line += page.paint(cells[i].tone, text);
    if (columns_[i].align == Align::kLeft) line += padding;
  }
  trim_right(line);
  return line + "\n";
}

std::string TextTable::render(const Page& page) const {
  const std::vector<std::size_t> widths = fitting_widths(page.width);
  std::vector<Cell> headings, rules;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    headings.emplace_back(columns_[i].heading, Tone::kStrong);
    std::string line;
    for (std::size_t column = 0; column < widths[i]; ++column) line += "─";
    rules.emplace_back(std::move(line), Tone::kFaint);
  }
  std::string text;
  const bool has_headings = std::ranges::any_of(columns_, [](const Column& c) { return !c.heading.empty(); });
  if (has_headings) text = render_row(headings, widths, page) + render_row(rules, widths, page);
  for (const auto& row : rows_) text += render_row(row.empty() ? rules : row, widths, page);
  return text;
}

}  // namespace offprof
