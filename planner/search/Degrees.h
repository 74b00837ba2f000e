//===- Degrees.h - what dp, tp and pp mean --------------------------------===//
//
// The mesh of a stage has one axis for each prime factor of dp and tp, data
// axes first, tensor axes last (so they join the nearest devices). A dp axis
// hands out units while the units can be shared out evenly; the rest of dp
// splits the rows inside a unit: tensor axes named dp, on which every op runs
// split by the batch. A tp axis splits anything else.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/plan/Plan.h"

namespace monarch::planner {

struct Degrees {
  int64_t dp = 1;
  int64_t tp = 1;
  int64_t pp = 1;
  int64_t unitRows = 1;
  auto operator<=>(const Degrees &) const = default;
};

std::vector<int64_t> primeFactors(int64_t number); // descending
std::vector<int64_t> divisors(int64_t number);     // ascending

/// Axes of a stage by their use, in the mesh's order.
struct MeshPlan {
  Mesh mesh;
  int dataAxes = 0;
  /// Tensor axes that split the rows inside a unit.
  int rowAxes = 0;
  int tensorAxes() const {
    return static_cast<int>(mesh.axes.size()) - dataAxes - rowAxes;
  }
  int firstTensorAxis() const { return dataAxes + rowAxes; }
  int64_t replicas() const;
  /// The same without data axes: what the layout of activations depends on.
  MeshPlan withoutData() const;
};

/// Nullopt where a rank would have no rows.
std::optional<MeshPlan> meshOf(const Degrees &degrees, int64_t globalRows);

/// Nearest divisors of the global batch, for messages.
std::vector<int64_t> nearestDivisors(int64_t number, int64_t wanted);

} // namespace monarch::planner
