//===- ModelCase.h - a model's graph with data to run it on ---------------===//
//
// A graph in float64, random weights by name, and batches whose labels are
// ignored
// (-100) unevenly, whole units included. All of it a pure function of names,
// units and positions, so that every plan sees the same step.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/strategy/Strategies.h"
#include "runtime/Session.h"

namespace monarch::test {

/// The graph with float32 values and casts made float64.
Graph promoted(Graph graph);

/// Normal weights by name, scale 0.2 (norm weights around 1).
class RandomWeights : public runtime::WeightSource {
public:
  Expected<at::Tensor> read(const runtime::WeightRequest &request) override;
};

/// Rows by (input, global unit); `global` units in a step.
class RandomBatches : public runtime::BatchSource {
public:
  Expected<at::Tensor> read(const runtime::BatchRequest &request) override;
};

/// One step on threads with these weights and batches.
Expected<runtime::SessionResult>
runCase(const Program &program,
        decltype(runtime::SessionOptions::onInstruction) onInstruction = {});

/// DESIGN's measure: max|d| / max(max|reference|, floor * largest gradient).
struct Deviation {
  std::string where;
  double error = 0;
};
/// The worst of loss, gradients and buffers.
Deviation compare(const runtime::SessionResult &result,
                  const runtime::SessionResult &reference);

} // namespace monarch::test
