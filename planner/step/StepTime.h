//===- StepTime.h - seconds of a training step ----------------------------===//
//
// Blocks, pipeline, gradient reduction and optimizer put together for one
// layout. Closed forms; the pipeline's are checked against the event
// simulation of planner/step/Pipeline.h.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/step/BlockTime.h"
#include "planner/step/Pipeline.h"

#include <map>
#include <tuple>

namespace monarch::planner {

struct StepTime {
  double seconds = 0;
  /// Of these: the slowest stage's own work, waiting in the pipeline,
  /// reduction and gathering of parameters that shows, optimizer.
  double stage = 0, bubble = 0, data = 0, optimizer = 0;
  /// Of the slowest stage: collectives inside layers, sends between stages.
  double exchange = 0, sends = 0;
  /// Of a layer, both ways: the host's part where it is the slower.
  double hostShare = 0;
  /// One layer, as priced.
  BlockTime layer;
  double layerForward = 0, layerBackward = 0;
};

/// All that the rest of a step sees of its stages. A step takes no less time
/// when any of these grows but for `forward` and `backward`, which hide
/// communication: what a bound over many cuts rests on.
struct StageFacts {
  /// Seconds of one micro-batch, both ways with its sends: of the slowest
  /// stage, and of all together.
  double slowest = 0, sum = 0;
  /// The largest of any stage: seconds of its layers, elements on one rank.
  double forward = 0, backward = 0;
  double parameters = 0, experts = 0;
  /// Of the first stage.
  double firstLayers = 0, firstParameters = 0, firstExperts = 0;
  /// Of the whole pipeline, by event simulation; shows where it is longer than
  /// the closed form. 0: not simulated.
  double pipeline = 0;
};

class StepModel {
public:
  StepModel(const ModelWork &work, const Machine &machine, const Target &target,
            const Constants &constants, double tensorDelaySeconds = 0);

  /// In closed form: a bound of `simulated`.
  StepTime price(const StepLayout &layout) const;
  StepTime simulated(const StepLayout &layout) const;
  /// The pipeline for the event simulation; sends keep their stage busy.
  PipelineShape pipeline(const StepLayout &layout) const;

  struct Layer {
    BlockTime time;
    double forward = 0, backward = 0;
  };
  /// Prices that depend on a few of a layout's fields: many layouts share them.
  struct Blocks {
    std::vector<Layer> kinds;
    /// Both ways.
    double embedding = 0, head = 0;
  };
  /// Valid as long as the model.
  const Blocks &blocksOf(const StepLayout &layout) const {
    return blocksOf(layout, layout.recompute);
  }
  const Blocks &blocksOf(const StepLayout &layout, Recompute recompute) const;
  /// Of a stage and one micro-batch.
  double sendSeconds(const StepLayout &layout) const;
  StageFacts factsOf(const StepLayout &layout) const;
  /// The step for stages like these; `factsOf` the layout's own gives its
  /// price.
  StepTime combine(const StepLayout &layout, const Blocks &shared,
                   const StageFacts &facts, double sends) const;

private:
  struct Stage {
    double seconds = 0;
    double layers = 0;
    /// Elements on this rank.
    double parameters = 0, expertParameters = 0;
    double forward = 0, backward = 0;
    /// Of the backward: gradients of weights, as long as the products forward.
    double weights = 0;
  };
  std::vector<Stage> stages(const StepLayout &layout, double sends) const;
  void slowDown(const StepLayout &layout, double sends,
                std::vector<Stage> &list) const;
  using BlocksKey =
      std::tuple<BlockSplit, Precision, AttentionKernel, Recompute, bool>;
  Layer layer(const BlockWork &block, const StepLayout &layout,
              Recompute recompute) const;
  void addFullySharded(const StepLayout &layout, const StageFacts &facts,
                       StepTime &time) const;
  void addReplicated(const StepLayout &layout, const StageFacts &facts,
                     StepTime &time) const;

  /// Every rank of a node updates as many on its host.
  double hostUpdate(double elements) const;

  const ModelWork &work;
  const Machine &machine;
  const Target &target;
  const Constants &constants;
  Kernels kernels;
  Network network;
  BlockPricer blocks;
  mutable std::map<BlocksKey, Blocks> priced;
};

BlockSplit splitOf(const StepLayout &layout);
/// What runs schedules that split the backward orders them by the times that it
/// measures: the order for equal pieces would be too slow, so they keep the
/// closed form, which agrees with measured rows.
inline bool isSimulated(const StepLayout &layout) {
  return layout.pp > 1 && !splitsBackward(layout.schedule);
}
/// How much of filling and draining the pipeline shows.
double rampShare(const StepLayout &layout);
/// Layers of each stage.
std::vector<int64_t> layersOfStages(const StepLayout &layout, int64_t layers);
/// Which ones: `count` from `first` on and, of a folded pipeline, `backCount`
/// from `back` on.
struct StageLayers {
  int64_t first = 0, count = 0, back = 0, backCount = 0;
  template <typename Visit> void forEach(Visit visit) const {
    for (int64_t layer = first; layer < first + count; ++layer)
      visit(static_cast<size_t>(layer));
    for (int64_t layer = back; layer < back + backCount; ++layer)
      visit(static_cast<size_t>(layer));
  }
};
std::vector<StageLayers> layersOn(const StepLayout &layout, int64_t layers);

} // namespace monarch::planner
