#include "simulator/tuner/plans/linear_program.h"

#include <coin/Clp_C_Interface.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "traces/base/error.h"

namespace offprof {

namespace {

/// Clp's C interface has been stable since 2006.
constexpr const char* kClpLibrary = "libClp.so.1";

/// Clp's functions, with the declarations of its header. The library is loaded only when needed, and its
/// symbols stay local. Clp loads Debian's BLAS; with global symbols LibTorch would use that BLAS instead of
/// its own, and would be several times slower.
struct Clp {
  static const Clp& get() {
    static const Clp clp;  // a failed construction is retried
    return clp;
  }

  void* library = open();
  decltype(&Clp_newModel) new_model = find<decltype(&Clp_newModel)>("Clp_newModel");
  decltype(&Clp_deleteModel) delete_model = find<decltype(&Clp_deleteModel)>("Clp_deleteModel");
  decltype(&Clp_setLogLevel) set_log_level = find<decltype(&Clp_setLogLevel)>("Clp_setLogLevel");
  decltype(&Clp_loadProblem) load_problem = find<decltype(&Clp_loadProblem)>("Clp_loadProblem");
  decltype(&Clp_addRows) add_rows = find<decltype(&Clp_addRows)>("Clp_addRows");
  decltype(&Clp_dual) dual = find<decltype(&Clp_dual)>("Clp_dual");
  decltype(&Clp_getColSolution) columns = find<decltype(&Clp_getColSolution)>("Clp_getColSolution");
  decltype(&Clp_getRowPrice) row_prices = find<decltype(&Clp_getRowPrice)>("Clp_getRowPrice");
  decltype(&Clp_status) status = find<decltype(&Clp_status)>("Clp_status");

 private:
  static Error unusable() {
    return environment_error(std::string("the linear program solver cannot be loaded: ") + dlerror(),
                             "Install it (Debian: coinor-libclp1), or skip plans with --no-plan.");
  }
  static void* open() {
    void* library = dlopen(kClpLibrary, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw unusable();
    return library;
  }
  template <typename Function>
  Function find(const char* name) {
    const auto function = reinterpret_cast<Function>(dlsym(library, name));
    if (function == nullptr) throw unusable();
    return function;
  }
};

}  // namespace

struct LinearProgram::Solver {
  const Clp& clp = Clp::get();
  Clp_Simplex* model = clp.new_model();
  bool is_loaded = false;

  Solver() = default;
  ~Solver() { clp.delete_model(model); }
  Solver(const Solver&) = delete;
  Solver& operator=(const Solver&) = delete;
};

LinearProgram::LinearProgram() : solver_(std::make_unique<Solver>()) {
  solver_->clp.set_log_level(solver_->model, 0);
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
  solver_->clp.load_problem(solver_->model, static_cast<int>(columns_.size()), 0, starts.data(), nullptr,
                            nullptr, lower.data(), upper.data(), cost.data(), nullptr, nullptr);
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
  solver_->clp.add_rows(solver_->model, static_cast<int>(lower.size()), lower.data(), upper.data(),
                        starts.data(), columns.data(), elements.data());
}

bool LinearProgram::solve() {
  if (!solver_->is_loaded) load();
  pass_rows();
  solver_->clp.dual(solver_->model, 0);
  const double* values = solver_->clp.columns(solver_->model);
  const double* prices = solver_->clp.row_prices(solver_->model);
  values_.assign(values, values + columns_.size());
  prices_.assign(prices, prices + rows_.size());
  return solver_->clp.status(solver_->model) == 0;
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
