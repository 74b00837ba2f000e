//===- Cotangents.h - which gradient belongs to which value ---------------===//
//
// A value's key is its gradient edge (node, output). While the forward runs, an
// observer of dispatcher calls maps edges to values and nodes to the ops that
// made them. While the backward runs, hooks before and after each node tell
// which gradients go in and out; between nodes the engine only adds gradients
// of one edge, in a known order, which is mirrored here. Gradients of leaves
// are not followed into their sums: each use is kept.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/Recorder.h"

#include <memory>

namespace monarch {

class Cotangents {
public:
  explicit Cotangents(Recorder &recorder);
  ~Cotangents();
  Cotangents(const Cotangents &) = delete;
  Cotangents &operator=(const Cotangents &) = delete;

  /// Before the forward: a leaf that takes gradients. Its uses are asked for by
  /// the order of these calls.
  void addLeaf(const at::Tensor &leaf);
  /// From here to `startBackward` calls are observed.
  void startForward();
  /// Hooks every node that `loss` reaches.
  void startBackward(const at::Tensor &loss);
  /// Writes Value::cotangentOf and Op::forward. An error when what was seen
  /// does not fit what was expected.
  std::optional<Error> finish();
  /// Gradient values of a leaf, one for each use.
  std::vector<ValueId> uses(size_t leaf) const;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace monarch
