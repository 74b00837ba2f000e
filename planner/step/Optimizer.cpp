//===- Optimizer.cpp - what an optimizer keeps and moves ------------------===//
#include "planner/step/Optimizer.h"

#include <algorithm>

namespace monarch::planner {

std::optional<Optimizer> parseOptimizer(std::string_view text) {
  static constexpr std::pair<std::string_view, Optimizer> Words[] = {
      {"adamw", Optimizer::AdamW},
      {"sgd", Optimizer::Sgd},
      {"sgd_momentum", Optimizer::SgdMomentum},
      {"adamw_8bit", Optimizer::Adam8bit}};
  for (const auto &[word, optimizer] : Words)
    if (text == word)
      return optimizer;
  return std::nullopt;
}

double momentBytes(Optimizer optimizer) {
  constexpr double BlockSize = 2048;
  switch (optimizer) {
  case Optimizer::AdamW:
    return 8;
  case Optimizer::SgdMomentum:
    return 4;
  case Optimizer::Sgd:
    return 0;
  case Optimizer::Adam8bit:
    return 2 * (1 + 4 / BlockSize);
  }
  return 8;
}

Target withOptimizer(const Target &target, Optimizer optimizer) {
  const double saved = momentBytes(Optimizer::AdamW) - momentBytes(optimizer);
  Target changed = target;
  changed.optimizerStateBytes =
      std::max(0.0, target.optimizerStateBytes - saved);
  changed.optimizerBytes = std::max(0.0, target.optimizerBytes - 2 * saved);
  return changed;
}

FrozenRun withFrozenWeights(const ModelWork &work, const Target &target) {
  FrozenRun run{work, target};
  auto freeze = [](BlockWork &block) {
    std::erase_if(block.backward.products, [](const Product &product) {
      return product.kind == ProductKind::WeightGradient;
    });
  };
  freeze(run.work.embedding);
  freeze(run.work.head);
  for (BlockWork &block : run.work.kinds)
    freeze(block);
  run.target.gradientBytes = 0;
  run.target.accumulateBytes = 0;
  run.target.mainGradientBytes = 0;
  run.target.optimizerStateBytes = 0;
  run.target.optimizerBytes = 0;
  return run;
}

} // namespace monarch::planner
