#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace offprof {

/// Linear program: minimizes a linear cost over bounded columns, subject to rows `sum of coefficient * column
/// >= least`. A thin wrapper of Clp (COIN-OR). Rows may be added between solves; each solve starts from the
/// last solution.
class LinearProgram {
 public:
  using Terms = std::vector<std::pair<std::size_t, double>>;  ///< column, coefficient; each column once

  LinearProgram();
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  /// Returns the column's number. `lower` and `upper` must be finite, which safe_bound relies on. Call only
  /// before the first solve.
  std::size_t add_column(double cost, double lower, double upper);
  void add_row(Terms terms, double least);

  /// Returns true if the solver found an optimum, to its tolerances.
  bool solve();

  /// Values of the columns in the last solution.
  const std::vector<double>& values() const { return values_; }
  double upper(std::size_t column) const { return columns_[column].upper; }
  std::size_t rows() const { return rows_.size(); }

  /// Returns a lower bound on the cost of every point that satisfies the rows and bounds. It is valid even if
  /// the solver was wrong: the solver's row prices (Lagrange multipliers) serve only as a guess, and the
  /// bound that weak duality gives for them is computed here (Neumaier, Shcherbina 2004, "Safe bounds in
  /// linear and mixed-integer linear programming"). A relative 1e-9 is subtracted for rounding.
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
