//===- Degrees.cpp - what dp, tp and pp mean ------------------------------===//
#include "planner/search/Degrees.h"

#include <algorithm>

namespace monarch::planner {

std::vector<int64_t> primeFactors(int64_t number) {
  std::vector<int64_t> factors;
  for (int64_t factor = 2; factor * factor <= number; ++factor)
    for (; number % factor == 0; number /= factor)
      factors.push_back(factor);
  if (number > 1)
    factors.push_back(number);
  std::reverse(factors.begin(), factors.end());
  return factors;
}

std::vector<int64_t> divisors(int64_t number) {
  std::vector<int64_t> low, high;
  for (int64_t divisor = 1; divisor * divisor <= number; ++divisor)
    if (number % divisor == 0) {
      low.push_back(divisor);
      if (divisor != number / divisor)
        high.push_back(number / divisor);
    }
  low.insert(low.end(), high.rbegin(), high.rend());
  return low;
}

std::vector<int64_t> nearestDivisors(int64_t number, int64_t wanted) {
  std::vector<int64_t> all = divisors(number), nearest;
  auto above = std::lower_bound(all.begin(), all.end(), wanted);
  if (above != all.begin())
    nearest.push_back(*(above - 1));
  if (above != all.end())
    nearest.push_back(*above);
  return nearest;
}

int64_t MeshPlan::replicas() const {
  int64_t replicas = 1;
  for (int i = 0; i < dataAxes; ++i)
    replicas *= mesh.axes[i].size;
  return replicas;
}

MeshPlan MeshPlan::withoutData() const {
  MeshPlan plan = *this;
  plan.mesh.axes.erase(plan.mesh.axes.begin(),
                       plan.mesh.axes.begin() + dataAxes);
  plan.dataAxes = 0;
  return plan;
}

namespace {

/// "tp" alone, "tp0", "tp1" where there are several.
void addAxes(Mesh &mesh, const std::string &name,
             const std::vector<int64_t> &sizes, AxisRole role, size_t first,
             size_t total) {
  for (size_t i = 0; i < sizes.size(); ++i)
    mesh.axes.push_back(
        {total == 1 ? name : name + std::to_string(first + i), sizes[i], role});
}

} // namespace

std::optional<MeshPlan> meshOf(const Degrees &degrees, int64_t globalRows) {
  if (globalRows % degrees.unitRows != 0)
    return std::nullopt;
  int64_t units = globalRows / degrees.unitRows, rows = degrees.unitRows;
  std::vector<int64_t> data, inUnit;
  for (int64_t prime : primeFactors(degrees.dp)) {
    if (units % prime == 0) {
      units /= prime;
      data.push_back(prime);
    } else {
      rows /= prime;
      inUnit.push_back(prime);
    }
  }
  if (rows == 0)
    return std::nullopt;
  MeshPlan plan;
  size_t dpAxes = data.size() + inUnit.size();
  addAxes(plan.mesh, "dp", data, AxisRole::Data, 0, dpAxes);
  addAxes(plan.mesh, "dp", inUnit, AxisRole::Tensor, data.size(), dpAxes);
  std::vector<int64_t> tensor = primeFactors(degrees.tp);
  addAxes(plan.mesh, "tp", tensor, AxisRole::Tensor, 0, tensor.size());
  plan.dataAxes = static_cast<int>(data.size());
  plan.rowAxes = static_cast<int>(inUnit.size());
  return plan;
}

} // namespace monarch::planner
