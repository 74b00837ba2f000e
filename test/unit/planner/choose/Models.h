//===- Models.h - models and machines of the tests of choices -------------===//
#pragma once

#include "planner/families/ModelShape.h"
#include "planner/step/Estimate.h"

namespace monarch::planner {

inline Machine boxes(const char *device, int64_t devices) {
  return usualBoxes(*findDevice(device), devices);
}

/// With a vocabulary of 128,256 and sequences of 8,192.
inline ModelShape llamaShape(int64_t hidden, int64_t heads, int64_t mlpHidden) {
  ModelShape shape;
  shape.family = ModelFamily::Llama;
  shape.isGated = true;
  shape.isTied = false;
  shape.hidden = hidden;
  shape.heads = heads;
  shape.kvHeads = std::min<int64_t>(8, heads);
  shape.headDim = 128;
  shape.mlpHidden = mlpHidden;
  shape.vocabulary = 128256;
  shape.sequence = 8192;
  return shape;
}

inline ModelWork llamaWork(int64_t layers, const ModelShape &shape,
                           const Target &target) {
  return *workOf(*buildGraph(shape), target.style, {layers});
}
inline ModelWork llama8b(const Target &target) {
  return llamaWork(32, llamaShape(4096, 32, 14336), target);
}
inline ModelWork llama70b(const Target &target) {
  return llamaWork(80, llamaShape(8192, 64, 28672), target);
}

} // namespace monarch::planner
