//===- Inference.h - serving: what fits, how long a token takes -----------===//
//
// Forward only. A prompt is read in one pass (prefill), then tokens come one by
// one (decode), each reading all weights of its ranks and the keys and values
// kept so far. Tensor and pipeline parallelism inside a replica, replicas on
// the rest.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

struct InferenceRequest {
  /// Sequences that a replica works on together, and tokens of each when the
  /// last one comes; the prompt is as long as the work's sequence.
  int64_t concurrency = 1;
  double length = 0;
  /// Bytes of an element at rest.
  double weightBytes = 2, keyValueBytes = 2;
  LayoutPins pins;
  double headroom = MemoryHeadroom;
};

struct InferenceEstimate {
  int64_t tp = 1, pp = 1, replicas = 1;
  int64_t idleDevices = 0;
  /// Layers of each stage.
  std::vector<int64_t> stageLayers;
  /// Of one sequence, on the fullest rank.
  double keyValueBytesPerToken = 0;
  /// Needed on the fullest rank; `usable` is what there is.
  double weights = 0, keysAndValues = 0, activations = 0, usableBytes = 0;
  double needed() const { return weights + keysAndValues + activations; }
  bool fits = false;
  /// Longest single sequence, and sequences of the request's length, that fit.
  int64_t maxLength = 0, maxConcurrency = 0;
  double prefillSeconds = 0;
  /// Between two tokens of a sequence.
  double tokenSeconds = 0;
  /// Of all replicas.
  double tokensPerSecond = 0;
};

/// What servers run: the kernels of `megatron`, whose forward is measured; no
/// published row of a server is compared.
Target servingTarget();

/// Degrees as pinned (tp, pp; the rest are replicas).
Expected<InferenceEstimate> estimateInference(const ModelWork &work,
                                              const Machine &machine,
                                              const Target &target,
                                              const InferenceRequest &request,
                                              int64_t tp, int64_t pp);

/// The degrees with the shortest time between tokens that fit, with the most
/// replicas among those within a twentieth. MP3310: none fits.
Expected<InferenceEstimate> chooseInference(const ModelWork &work,
                                            const Machine &machine,
                                            const Target &target,
                                            const InferenceRequest &request);

/// Needed and reserved apart: a server takes its share of the card by design
/// and keeps more keys and values there.
std::string summarize(const InferenceEstimate &estimate, const Machine &machine,
                      const InferenceRequest &request);
Json toJson(const InferenceEstimate &estimate, const Machine &machine,
            const InferenceRequest &request);

/// One device of a pipeline over several types of devices.
struct ServingStage {
  size_t part = 0;
  int64_t layers = 0;
  double needed = 0, usableBytes = 0;
};
struct MixedServing {
  std::vector<ServingStage> stages;
  double tokenSeconds = 0, prefillSeconds = 0;
  int64_t maxLength = 0;
};
/// A stage on every device, in the order of the parts: layers by what each
/// device's memory holds, all about equally full. MP3310: they hold less than
/// the model needs.
Expected<MixedServing> serveMixed(const ModelWork &work,
                                  const std::vector<Machine> &parts,
                                  const Target &target,
                                  const InferenceRequest &request);
std::string summarize(const MixedServing &choice,
                      const std::vector<Machine> &parts);
Json toJson(const MixedServing &choice, const std::vector<Machine> &parts);

} // namespace monarch::planner
