#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal.h"

namespace offprof {

enum class Align { kLeft, kRight };

/// A table of text, aligned in columns. Numbers belong into right-aligned columns, which are never cut.
class TextTable {
 public:
  struct Column {
    std::string heading;
    Align align = Align::kRight;
  };
  struct Cell {
    // Implicit, so that a row reads as its words.
    Cell(std::string cell_text, Tone cell_tone = Tone::kPlain)  // NOLINT(google-explicit-constructor)
        : text(std::move(cell_text)), tone(cell_tone) {}
    Cell(const char* cell_text) : text(cell_text) {}  // NOLINT(google-explicit-constructor)
    std::string text;
    Tone tone = Tone::kPlain;
  };

  explicit TextTable(std::vector<Column> columns);

  /// One cell per column.
  void add_row(std::vector<Cell> cells);
  /// A line between the rows before and after it.
  void add_rule();
  bool empty() const { return rows_.empty(); }

  /// The table, indented by two columns and within the page's width: the widest left-aligned column is cut,
  /// again and again, until the table fits or all of them are down to a few letters. Lines end without
  /// blanks.
  std::string render(const Page& page) const;

 private:
  std::vector<std::size_t> fitting_widths(std::size_t page_width) const;
  std::string render_row(const std::vector<Cell>& cells, const std::vector<std::size_t>& widths,
                         const Page& page) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;  ///< a row without cells is a rule
};

}  // namespace offprof
