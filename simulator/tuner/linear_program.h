#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace offprof {

/// Minimises a linear cost over columns within bounds, subject to rows `sum of coefficient * column >=
/// least`. A thin wrapper of Clp (COIN-OR). Rows may be added between solves; a solve goes on from the last
/// one.
class LinearProgram {
 public:
  using Terms = std::vector<std::pair<std::size_t, double>>;  ///< column, coefficient; each column once

  LinearProgram();
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  /// Its number. `lower` and `upper` are finite: what makes safe_bound safe. Before the first solve only.
  std::size_t add_column(double cost, double lower, double upper);
  void add_row(Terms terms, double least);

  /// Whether it came to an optimum, to the solver's tolerances.
  bool solve();

  /// Of the last solve, by column.
  const std::vector<double>& values() const { return values_; }
  double upper(std::size_t column) const { return columns_[column].upper; }
  std::size_t rows() const { return rows_.size(); }

  /// No point that keeps to the rows and bounds costs less. Valid whatever the solver got wrong: its row
  /// prices are taken as a guess only, and the bound that weak duality gives for them is computed here
  /// (Neumaier, Shcherbina 2004, "Safe bounds in linear and mixed-integer linear programming"); rounding
  /// takes a relative 1e-9 off.
  double safe_bound() const;

 private:
  struct Column {
    double cost, lower, upper;
  };
  struct Row {
    Terms terms;
    double least;
  };
  struct Solver;

  void load();
  void pass_rows();

  std::vector<Column> columns_;
  std::vector<Row> rows_;
  std::size_t rows_passed_ = 0;
  std::vector<double> values_, prices_;
  std::unique_ptr<Solver> solver_;
};

}  // namespace offprof
