#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"

namespace offprof {

enum class Align { kLeft, kRight };

/// A text table with aligned columns. Use right-aligned columns for numbers; they are never cut.
class TextTable {
 public:
  struct Column {
    std::string heading;
    Align align = Align::kRight;
  };
  struct Cell {
    // Implicit, so that callers can write a row as a list of strings.
    Cell(std::string cell_text, Tone cell_tone = Tone::kPlain)  // NOLINT(google-explicit-constructor)
        : text(std::move(cell_text)), tone(cell_tone) {}
    Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
    std::string text;
    Tone tone = Tone::kPlain;
  };

  explicit TextTable(std::vector<Column> columns);

  /// Adds a row with one cell per column.
  void add_row(std::vector<Cell> cells);
  /// Adds a horizontal line between the rows before and after it.
  void add_rule();
  bool empty() const { return rows_.empty(); }

  /// Returns the table, indented by two columns and limited to the page's width. To make it fit, repeatedly
  /// cuts the widest left-aligned column, until the table fits or all of these columns are down to a few
  /// letters. Lines have no trailing blanks.
  std::string render(const Page& page) const;

 private:
  std::vector<std::size_t> fitting_widths(std::size_t page_width) const;
  std::string render_row(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                         const Page& page) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;  ///< a row without cells is a rule
};

}  // namespace offprof
