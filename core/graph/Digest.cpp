//===- Digest.cpp - what a graph computes, in 64 digits -------------------===//
//
// The canonical text without traces and without where bytes lie: equal across
// exports of the same ops.
//
//===----------------------------------------------------------------------===//
#include "core/graph/Graph.h"
#include "core/support/Sha256.h"

namespace monarch {

std::string digest(const Graph &graph) {
  Graph bare = graph;
  for (Op &op : bare.ops) {
    op.module.clear();
    op.source.clear();
  }
  for (Parameter &parameter : bare.parameters)
    parameter.storage = {};
  for (Buffer &buffer : bare.buffers)
    buffer.storage = {};
  for (Storage &storage : bare.constantStorage)
    storage = {};
  return sha256(writeGraph(bare));
}

} // namespace monarch
