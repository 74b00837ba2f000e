//===- Fit.cpp - the fitted constants, from calibrate rows ----------------===//
#include "bench/ground_truth/Fit.h"

#include <algorithm>
#include <cmath>

namespace monarch::bench {

using namespace planner;

namespace {

using Vector = std::vector<double>;

class Problem {
public:
  Problem(const Predictor &predictor, const Constants &start)
      : predictor(predictor), start(start), ranges(fittedConstants()) {}

  size_t size() const { return ranges.size(); }
  Vector startPoint() const {
    Vector x;
    for (const ConstantRange &range : ranges)
      x.push_back(std::log(
          std::clamp(start.*range.field.member, range.low, range.high)));
    return x;
  }
  Constants constantsAt(const Vector &x) const {
    Constants constants = start;
    for (size_t i = 0; i < x.size(); ++i)
      constants.*ranges[i].field.member = std::exp(x[i]);
    return constants;
  }
  void clamp(Vector &x) const {
    for (size_t i = 0; i < x.size(); ++i)
      x[i] =
          std::clamp(x[i], std::log(ranges[i].low), std::log(ranges[i].high));
  }
  /// Residuals by weight, with the pulls at the end.
  Vector residuals(const Vector &x) const {
    Vector list;
    for (const Predictor::Residual &residual :
         predictor.residuals(constantsAt(x)))
      list.push_back(residual.value *
                     predictor.rows[residual.row].source->weight);
    constexpr double Pull = 0.15;
    for (size_t i = 0; i < x.size(); ++i) {
      double low = std::log(ranges[i].low), high = std::log(ranges[i].high);
      list.push_back(Pull * (x[i] - (low + high) / 2) / ((high - low) / 3));
    }
    return list;
  }
  /// Soft L1: quadratic below Scale, linear above.
  static double loss(const Vector &list) {
    double sum = 0;
    for (double value : list)
      sum += 2 * Scale * Scale *
             (std::sqrt(1 + value * value / (Scale * Scale)) - 1);
    return sum;
  }
  static double importance(double value) {
    return 1 / std::sqrt(1 + value * value / (Scale * Scale));
  }

private:
  static constexpr double Scale = 0.06;
  const Predictor &predictor;
  const Constants &start;
  std::vector<ConstantRange> ranges;
};

/// Gaussian elimination with pivoting; the matrix is positive definite.
Vector solve(std::vector<Vector> matrix, Vector right) {
  const size_t n = right.size();
  for (size_t column = 0; column < n; ++column) {
    size_t pivot = column;
    for (size_t row = column + 1; row < n; ++row)
      if (std::abs(matrix[row][column]) > std::abs(matrix[pivot][column]))
        pivot = row;
    std::swap(matrix[column], matrix[pivot]);
    std::swap(right[column], right[pivot]);
    for (size_t row = column + 1; row < n; ++row) {
      double factor = matrix[row][column] / matrix[column][column];
      for (size_t k = column; k < n; ++k)
        matrix[row][k] -= factor * matrix[column][k];
      right[row] -= factor * right[column];
    }
  }
  for (size_t row = n; row-- > 0;) {
    for (size_t k = row + 1; k < n; ++k)
      right[row] -= matrix[row][k] * right[k];
    right[row] /= matrix[row][row];
  }
  return right;
}

} // namespace

Constants fit(const Predictor &predictor, const Constants &start) {
  constexpr int Steps = 40;
  constexpr double Nudge = 1e-3;
  Problem problem(predictor, start);
  const size_t n = problem.size();
  Vector x = problem.startPoint();
  Vector now = problem.residuals(x);
  double loss = Problem::loss(now), damping = 1e-3;
  for (int step = 0; step < Steps; ++step) {
    std::vector<Vector> slopes(n);
    for (size_t i = 0; i < n; ++i) {
      Vector moved = x;
      moved[i] += Nudge;
      slopes[i] = problem.residuals(moved);
      for (size_t k = 0; k < now.size(); ++k)
        slopes[i][k] = (slopes[i][k] - now[k]) / Nudge;
    }
    std::vector<Vector> matrix(n, Vector(n, 0));
    Vector right(n, 0);
    for (size_t k = 0; k < now.size(); ++k) {
      double weight = Problem::importance(now[k]);
      for (size_t i = 0; i < n; ++i) {
        right[i] -= weight * slopes[i][k] * now[k];
        for (size_t j = 0; j < n; ++j)
          matrix[i][j] += weight * slopes[i][k] * slopes[j][k];
      }
    }
    for (size_t i = 0; i < n; ++i)
      matrix[i][i] *= 1 + damping;
    Vector change = solve(matrix, right);
    Vector next = x;
    for (size_t i = 0; i < n; ++i)
      next[i] += change[i];
    problem.clamp(next);
    Vector then = problem.residuals(next);
    double other = Problem::loss(then);
    if (other < loss) {
      x = next;
      now = then;
      loss = other;
      damping = std::max(damping / 4, 1e-9);
    } else {
      damping *= 8;
    }
  }
  return problem.constantsAt(x);
}

} // namespace monarch::bench
