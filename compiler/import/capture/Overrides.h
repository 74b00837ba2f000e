//===- Overrides.h - composite ops that capture decides itself ------------===//
//
// Above autograd, for as long as the object lives:
//   scaled_dot_product_attention -> monarch::attention; with dropout spelled
//   out dropout                      -> monarch::dropout, one stream a call
//   nll_loss, mse_loss, mean     -> sum times a leaf InverseCount
// so that LibTorch derives the backward of what the graph is to hold.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/Recorder.h"

namespace monarch {

class Overrides {
public:
  /// `countMeans` false leaves the losses as they are.
  Overrides(Recorder &recorder, bool countMeans);
  ~Overrides();
  Overrides(const Overrides &) = delete;
  Overrides &operator=(const Overrides &) = delete;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace monarch
