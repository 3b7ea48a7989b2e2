#include "simulator/tuner/linear_program.h"

#include <coin/Clp_C_Interface.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace offprof {

struct LinearProgram::Solver {
  Clp_Simplex* model = Clp_newModel();
  bool is_loaded = false;

  Solver() = default;
  ~Solver() { Clp_deleteModel(model); }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
};

LinearProgram::LinearProgram() : solver_(std::make_unique<Solver>()) {
  Clp_setLogLevel(solver_->model, 0);
}
LinearProgram::~LinearProgram() = default;

std::size_t LinearProgram::add_column(double cost, double lower, double upper) {
  columns_.push_back({cost, lower, upper});
  return columns_.size() - 1;
}

void LinearProgram::add_row(Terms terms, double least) {
  rows_.push_back({std::move(terms), least});
}

void LinearProgram::load() {
  std::vector<double> cost, lower, upper;
  for (const Column& column : columns_) {
    cost.push_back(column.cost);
    lower.push_back(column.lower);
    upper.push_back(column.upper);
  }
  const std::vector<CoinBigIndex> starts(columns_.size() + 1, 0);
  Clp_loadProblem(solver_->model, static_cast<int>(columns_.size()), 0, starts.data(), nullptr, nullptr,
                  lower.data(), upper.data(), cost.data(), nullptr, nullptr);
  solver_->is_loaded = true;
}

void LinearProgram::pass_rows() {
  std::vector<double> lower, upper, elements;
  std::vector<int> starts = {0}, columns;
  for (; rows_passed_ < rows_.size(); ++rows_passed_) {
    const Row& row = rows_[rows_passed_];
    lower.push_back(row.least);
    upper.push_back(std::numeric_limits<double>::max());
    for (const auto& [column, coefficient] : row.terms) {
      columns.push_back(static_cast<int>(column));
      elements.push_back(coefficient);
    }
    starts.push_back(static_cast<int>(columns.size()));
  }
  if (lower.empty()) return;
  Clp_addRows(solver_->model, static_cast<int>(lower.size()), lower.data(), upper.data(), starts.data(),
              columns.data(), elements.data());
}

bool LinearProgram::solve() {
  if (!solver_->is_loaded) load();
  pass_rows();
  Clp_dual(solver_->model, 0);
  const double* values = Clp_getColSolution(solver_->model);
  const double* prices = Clp_getRowPrice(solver_->model);
  values_.assign(values, values + columns_.size());
  prices_.assign(prices, prices + rows_.size());
  return Clp_status(solver_->model) == 0;
}

double LinearProgram::safe_bound() const {
  constexpr double kRounding = 1e-9;
  std::vector<double> reduced;
  for (const Column& column : columns_) reduced.push_back(column.cost);
  double bound = 0, size = 0;
  for (std::size_t i = 0; i < prices_.size(); ++i) {
    const double price = std::isfinite(prices_[i]) ? std::max(prices_[i], 0.0) : 0;
    bound += price * rows_[i].least;
    size += std::abs(price * rows_[i].least);
    for (const auto& [column, coefficient] : rows_[i].terms) reduced[column] -= price * coefficient;
  }
  for (std::size_t j = 0; j < columns_.size(); ++j) {
    const double least = std::min(reduced[j] * columns_[j].lower, reduced[j] * columns_[j].upper);
    bound += least;
    size += std::abs(least);
  }
  return bound - kRounding * size;
}

}  // namespace offprof
