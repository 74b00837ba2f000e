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

#include <set>

namespace monarch {

class Overrides {
public:
  /// The means whose leaf would have one of these names stay means of the unit.
  Overrides(Recorder &recorder, const std::set<std::string> &plainMeans);
  ~Overrides();
  Overrides(const Overrides &) = delete;
  Overrides &operator=(const Overrides &) = delete;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace monarch
