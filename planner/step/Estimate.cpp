//===- Estimate.cpp - one layout, priced and explained --------------------===//
#include "planner/step/Estimate.h"

#include "planner/step/LayoutText.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

std::string seconds(double value) {
  return value < 1 ? fmt::format("{:.1f} ms", value * 1e3)
                   : fmt::format("{:.2f} s", value);
}

std::string bindingPart(const StepTime &time) {
  constexpr double MuchHost = 0.3;
  if (time.hostShare > MuchHost)
    return "host launches";
  std::pair<double, const char *> parts[] = {
      {time.stage - time.exchange - time.sends, "compute"},
      {time.exchange, "collectives inside layers"},
      {time.sends, "sends between stages"},
      {time.bubble, "pipeline bubble"},
      {time.data, "reduction and gathering of parameters"},
      {time.optimizer, "optimizer"}};
  return std::max_element(std::begin(parts), std::end(parts))->second;
}

} // namespace

namespace {

/// "20 + 20" or "4 x 20" layers.
std::string stageText(const std::vector<int64_t> &layers) {
  std::string text;
  for (size_t begin = 0; begin < layers.size();) {
    size_t end = begin;
    while (end < layers.size() && layers[end] == layers[begin])
      ++end;
    text += text.empty() ? "" : " + ";
    text += end - begin == 1
                ? fmt::format("{}", layers[begin])
                : fmt::format("{} x {}", end - begin, layers[begin]);
    begin = end;
  }
  return text;
}

std::string layoutLines(const StepLayout &layout,
                        const std::vector<int64_t> &stageLayers) {
  std::string text = fmt::format(
      "layout    {} rows = {:g} micro-batches of {} on each of {} replicas, {}",
      layout.globalBatch, layout.microBatches(), layout.microBatch, layout.dp,
      toString(layout.schedule));
  if (layout.chunks > 1)
    text += fmt::format(" interleaved in {} chunks", layout.chunks);
  text += fmt::format("\n  zero {}", static_cast<int>(layout.sharding));
  if (layout.shardGroup > 0)
    text += fmt::format(" in groups of {}", layout.shardGroup);
  if (layout.offloadsOptimizer)
    text += ", optimizer on the host";
  text += fmt::format(", recompute {}", toString(layout.recompute));
  if (layout.isSequenceParallel)
    text += ", sequence parallel";
  if (layout.ep > 1)
    text += fmt::format(", experts over {}", layout.ep);
  if (layout.precision == Precision::Fp8)
    text += ", fp8 products";
  return text +
         fmt::format("\nstages    {} layers; embedding on the first, head on "
                     "the last\n",
                     stageText(stageLayers));
}

} // namespace

Expected<PipelineRun> scheduleOf(const Estimate &e, const ModelWork &work,
                                 const Machine &machine, const Target &target) {
  const StepModel model(work, machine, target, builtInConstants());
  Expected<PipelineRun> run = runPipeline(model.pipeline(e.layout));
  if (!run)
    return run;
  // The estimate knows that a device that waits is cooler and then faster.
  const double scale = (e.time.stage + e.time.bubble) / run->seconds;
  for (PipelineEvent &event : run->events) {
    event.begin *= scale;
    event.end *= scale;
  }
  run->seconds *= scale;
  run->after = {{"reduce and gather", e.time.data},
                {"optimizer", e.time.optimizer}};
  return run;
}

double modelFlops(const ModelWork &work) {
  const BlockSplit one;
  auto of = [&](const BlockWork &block) {
    double flops = 0;
    for (const Product &product : block.forward.products)
      flops += 2 * product.batch.at(one) * product.m.at(one) *
               product.n.at(one) * product.k.at(one);
    for (const AttentionWork &attention : block.forward.attentions)
      flops += attention.heads.at(one) * attention.sequence *
               attention.keySequence *
               (attention.queryDim + attention.valueDim);
    return flops;
  };
  double flops = of(work.head);
  for (int kind : work.layers)
    flops += of(work.kinds[kind]);
  return 3 * flops;
}

double usableBytes(const Machine &machine, const Target &target,
                   double headroom) {
  return machine.device.memoryBytes * (1 - headroom) - target.contextGiB * GiB;
}

Expected<Estimate> estimate(const ModelWork &work, const Machine &machine,
                            const Target &target, const StepLayout &layout,
                            double headroom) {
  std::vector<std::string> wrong =
      layoutViolations(work, machine, target, layout);
  if (!wrong.empty())
    return Error{"MP3302", ExitCode::Infeasible,
                 fmt::format("{}", fmt::join(wrong, "; ")), "",
                 "change the degrees named"};
  Estimate result;
  result.layout = layout;
  result.stageLayers =
      layersOfStages(layout, static_cast<int64_t>(work.layers.size()));
  const StepModel model(work, machine, target, builtInConstants());
  result.time = model.simulated(layout);
  const MemoryModel memory(work, target);
  result.memory = memory.price(layout);
  const BandFacts facts = bandFacts(result.time, layout, work, machine, false);
  result.halfWidth = bandHalfWidth(facts, builtInBand());
  const double rows = static_cast<double>(layout.globalBatch);
  result.tokensPerSecond = rows * work.sequence / result.time.seconds;
  const double peak = layout.precision == Precision::Fp8
                          ? machine.device.fp8PeakFlops
                          : machine.device.peakFlops;
  result.modelFlopsShare =
      rows * modelFlops(work) /
      (result.time.seconds * peak * static_cast<double>(machine.devices));
  result.usableBytes = usableBytes(machine, target, headroom);
  result.fits = result.memory.total <= result.usableBytes;
  result.binds = bindingPart(result.time);
  if (!machine.device.isMeasured)
    result.remarks.push_back("no measured product rate for " +
                             machine.device.name +
                             ": the share of its generation, wider band");
  if (!machine.device.unverified.empty())
    result.remarks.push_back("unverified figures of " + machine.device.name +
                             ": " + machine.device.unverified);
  return result;
}

std::string summarize(const Estimate &e, const Machine &machine,
                      const Target &target) {
  const StepTime &t = e.time;
  const StepMemory &m = e.memory;
  auto share = [&](double part) { return 100 * part / t.seconds; };
  std::string text = fmt::format(
      "{} x {} for {}: tp {} x pp {} x dp {} x cp {} = {}\n", machine.devices,
      machine.device.name, target.name, e.layout.tp, e.layout.pp, e.layout.dp,
      e.layout.cp, e.layout.devices());
  text += layoutLines(e.layout, e.stageLayers);
  text += fmt::format("step      {}  (90 %: {} to {})\n", seconds(t.seconds),
                      seconds(t.seconds * (1 - e.halfWidth)),
                      seconds(t.seconds * (1 + e.halfWidth)));
  text += fmt::format("  compute {:.0f} %, collectives in layers {:.0f} %, "
                      "sends {:.0f} %, bubble {:.0f} %, reduction {:.0f} %, "
                      "optimizer {:.0f} %\n",
                      share(t.stage - t.exchange - t.sends), share(t.exchange),
                      share(t.sends), share(t.bubble), share(t.data),
                      share(t.optimizer));
  text += fmt::format("  {:.0f} tokens/s, {:.0f} a device, MFU {:.1f} %\n",
                      e.tokensPerSecond,
                      e.tokensPerSecond / static_cast<double>(machine.devices),
                      100 * e.modelFlopsShare);
  text += fmt::format("memory    {:.1f} of {:.1f} GiB on stage {}: {}\n",
                      m.total / GiB, e.usableBytes / GiB, m.stage,
                      e.fits ? "fits" : "does not fit");
  text += fmt::format(
      "  parameters {:.1f}, gradients {:.1f}, optimizer {:.1f}, activations "
      "{:.1f}, logits {:.1f}, one layer {:.1f}, gathered {:.1f}\n",
      m.parameters / GiB, m.gradients / GiB, m.optimizer / GiB,
      m.activations / GiB, m.logits / GiB, m.layer / GiB, m.gathered / GiB);
  text += fmt::format("binds     {}\n", e.fits ? e.binds : "memory");
  for (const std::string &remark : e.remarks)
    text += fmt::format("note      {}\n", remark);
  return text;
}

Json toJson(const Estimate &e, const Machine &machine, const Target &target) {
  const StepTime &t = e.time;
  const StepMemory &m = e.memory;
  Json json;
  json["target"] = target.name;
  json["device"] = machine.device.name;
  json["devices"] = machine.devices;
  json["layout"] = layoutToJson(e.layout);
  json["step_seconds"] = rounded(t.seconds);
  json["band"] = {{"low_seconds", rounded(t.seconds * (1 - e.halfWidth))},
                  {"high_seconds", rounded(t.seconds * (1 + e.halfWidth))}};
  json["seconds"] = {{"compute", rounded(t.stage - t.exchange - t.sends)},
                     {"exchange", rounded(t.exchange)},
                     {"sends", rounded(t.sends)},
                     {"bubble", rounded(t.bubble)},
                     {"reduction", rounded(t.data)},
                     {"optimizer", rounded(t.optimizer)}};
  json["tokens_per_second"] = rounded(e.tokensPerSecond);
  json["mfu"] = rounded(e.modelFlopsShare);
  json["memory_bytes"] = {{"stage", m.stage},
                          {"total", rounded(m.total)},
                          {"usable", rounded(e.usableBytes)},
                          {"parameters", rounded(m.parameters)},
                          {"gradients", rounded(m.gradients)},
                          {"optimizer", rounded(m.optimizer)},
                          {"activations", rounded(m.activations)},
                          {"logits", rounded(m.logits)},
                          {"layer", rounded(m.layer)},
                          {"gathered", rounded(m.gathered)}};
  json["fits"] = e.fits;
  json["binds"] = e.fits ? e.binds : "memory";
  json["remarks"] = e.remarks;
  return json;
}

} // namespace monarch::planner
