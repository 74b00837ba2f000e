//===- BuildGraph.cpp - a decoder's joint graph from its numbers ----------===//
//
// Written twice, for one row and for two: what grows with the rows is a
// multiple of them, which gives every dim its factor of the batch.
//
//===----------------------------------------------------------------------===//
#include "planner/families/GraphTape.h"
#include "planner/families/ModelShape.h"

#include <fmt/format.h>

namespace monarch::planner {

namespace {

using Shape = GraphTape::Shape;

class Decoder {
public:
  Decoder(const ModelShape &model, int64_t rows)
      : model(model), rows(rows), tape(rows, model.type) {}

  Graph run() {
    bool isGpt = model.family == ModelFamily::Gpt;
    ValueId ids = tape.input("input_ids", {rows, model.sequence});
    ValueId labels = tape.input("labels", {rows, model.sequence});
    ValueId table =
        tape.parameter("tokens.weight", {model.vocabulary, model.hidden});
    tape.module = "tokens";
    ValueId x = tape.embedding(table, ids);
    if (isGpt) {
      ValueId positions =
          tape.parameter("positions.weight", {model.sequence, model.hidden});
      tape.module = "";
      ValueId range = tape.arange(model.sequence);
      tape.module = "positions";
      x = tape.add(x, tape.embedding(positions, range));
      x = tape.dropout(x, model.dropout);
    } else {
      const int64_t dim = model.latent ? model.latent->ropeDim : model.headDim;
      cosines = tape.constant("cos", {1, 1, model.sequence, dim}, model.type);
      sines = tape.constant("sin", {1, 1, model.sequence, dim}, model.type);
    }
    for (int64_t layer = 0; layer < model.layers; ++layer) {
      prefix = fmt::format("blocks.{}", layer);
      x = isGpt ? gptBlock(x) : llamaBlock(x, layer);
    }
    prefix = "";
    x = norm("norm", x);
    ValueId head =
        model.isTied
            ? table
            : tape.parameter("head.weight", {model.vocabulary, model.hidden});
    tape.module = "head";
    ValueId logits = tape.linear(x, head, None);
    tape.module = "";
    tape.crossEntropy(logits, labels);
    return tape.finish();
  }

private:
  std::string path(const std::string &name) const {
    return prefix.empty() ? name : prefix + "." + name;
  }
  ValueId linear(const std::string &name, ValueId x, int64_t features,
                 bool hasBias) {
    tape.module = path(name);
    ValueId weight = tape.parameter(path(name) + ".weight",
                                    {features, tape.shapeOf(x).back()});
    ValueId bias =
        hasBias ? tape.parameter(path(name) + ".bias", {features}) : None;
    return tape.linear(x, weight, bias);
  }
  ValueId norm(const std::string &name, ValueId x) {
    tape.module = path(name);
    const Shape shape{tape.shapeOf(x).back()};
    ValueId weight = tape.parameter(path(name) + ".weight", shape);
    if (model.family == ModelFamily::Llama)
      return tape.rmsNorm(x, weight);
    return tape.layerNorm(x, weight,
                          tape.parameter(path(name) + ".bias", shape));
  }
  /// [rows, sequence, heads * dim] -> [rows, heads, sequence, dim].
  ValueId heads(ValueId x, int64_t count) {
    const Shape shape = tape.shapeOf(x);
    ValueId y = tape.view(x, {shape[0], shape[1], count, shape[2] / count},
                          model.family == ModelFamily::Llama);
    return tape.transpose(y, 1, 2);
  }
  ValueId joined(ValueId x) {
    const Shape shape = tape.shapeOf(x);
    return tape.view(tape.transpose(x, 1, 2),
                     {shape[0], shape[2], shape[1] * shape[3]});
  }

  ValueId gptBlock(ValueId x) {
    const int64_t own = model.heads * model.headDim;
    const int64_t shared = model.kvHeads * model.headDim;
    ValueId fused = linear("qkv", norm("norm1", x), own + 2 * shared, true);
    tape.module = prefix;
    std::vector<ValueId> parts = tape.split(fused, {own, shared, shared}, 2);
    ValueId q = heads(parts[0], model.heads);
    ValueId k = tape.repeatHeads(heads(parts[1], model.kvHeads),
                                 model.heads / model.kvHeads);
    ValueId v = tape.repeatHeads(heads(parts[2], model.kvHeads),
                                 model.heads / model.kvHeads);
    ValueId y = joined(tape.attention(q, k, v, true));
    x = residual(x, linear("proj", y, model.hidden, true));
    y = linear("up", norm("norm2", x), model.mlpHidden, true);
    tape.module = prefix;
    return residual(x, linear("down", tape.gelu(y), model.hidden, true));
  }
  ValueId residual(ValueId x, ValueId y) {
    tape.module = path("drop");
    y = tape.dropout(y, model.dropout);
    tape.module = prefix;
    return tape.add(x, y);
  }

  ValueId llamaBlock(ValueId x, int64_t layer) {
    ValueId y = norm("norm1", x);
    y = model.latent ? latentAttention(y) : groupedAttention(y);
    x = tape.add(x, linear("attention.o", y, model.hidden, false));
    y = norm("norm2", x);
    bool isRouted = model.experts && layer >= model.experts->denseLayers;
    y = isRouted ? routed(y) : gatedMlp("mlp", y, model.mlpHidden);
    tape.module = prefix;
    return tape.add(x, y);
  }
  ValueId groupedAttention(ValueId x) {
    ValueId q =
        heads(linear("attention.q", x, model.heads * model.headDim, false),
              model.heads);
    const int64_t shared = model.kvHeads * model.headDim;
    ValueId k = heads(linear("attention.k", x, shared, false), model.kvHeads);
    ValueId v = heads(linear("attention.v", x, shared, false), model.kvHeads);
    tape.module = path("attention");
    q = tape.rotary(q, cosines, sines);
    k = tape.rotary(k, cosines, sines);
    k = tape.repeatHeads(k, model.heads / model.kvHeads);
    v = tape.repeatHeads(v, model.heads / model.kvHeads);
    return joined(tape.attention(q, k, v, true));
  }
  ValueId latentAttention(ValueId x) {
    const LatentShape &latent = *model.latent;
    const int64_t queryDim = latent.nopeDim + latent.ropeDim;
    ValueId q = x;
    if (latent.queryRank)
      q = norm("attention.q_norm",
               linear("attention.q_a", x, latent.queryRank, false));
    q = heads(linear("attention.q_b", q, model.heads * queryDim, false),
              model.heads);
    ValueId compressed =
        linear("attention.kv_a", x, latent.keyRank + latent.ropeDim, false);
    tape.module = path("attention");
    std::vector<ValueId> parts =
        tape.split(compressed, {latent.keyRank, latent.ropeDim}, 2);
    ValueId pairs =
        linear("attention.kv_b", norm("attention.kv_norm", parts[0]),
               model.heads * (latent.nopeDim + latent.valueDim), false);
    tape.module = path("attention");
    std::vector<ValueId> keyValue = tape.split(
        heads(pairs, model.heads), {latent.nopeDim, latent.valueDim}, 3);
    std::vector<ValueId> query =
        tape.split(q, {latent.nopeDim, latent.ropeDim}, 3);
    q = tape.cat({query[0], tape.rotary(query[1], cosines, sines)}, 3);
    ValueId position = tape.repeatHeads(
        tape.rotary(heads(parts[1], 1), cosines, sines), model.heads);
    ValueId k = tape.cat({keyValue[0], position}, 3);
    return joined(tape.attention(q, k, keyValue[1], true));
  }
  ValueId gatedMlp(const std::string &name, ValueId x, int64_t width) {
    ValueId gate = linear(name + ".gate", x, width, false);
    tape.module = path(name);
    gate = tape.silu(gate);
    ValueId up = linear(name + ".up", x, width, false);
    tape.module = path(name);
    return linear(name + ".down", tape.mul(gate, up), model.hidden, false);
  }
  /// Each token goes to `perToken` experts; all get equal shares.
  ValueId routed(ValueId x) {
    const ExpertShape &experts = *model.experts;
    const int64_t tokens = rows * model.sequence;
    // A row's share of an expert, rounded up.
    const int64_t share =
        (model.sequence * experts.perToken + experts.count - 1) /
        experts.count * rows;
    tape.module = path("router");
    ValueId flat = tape.view(x, {tokens, model.hidden});
    ValueId scores =
        tape.softmax(tape.linear(flat,
                                 tape.parameter(path("router.weight"),
                                                {experts.count, model.hidden}),
                                 None),
                     1);
    tape.module = path("experts");
    ValueId order = tape.input(path("router.order"), {experts.count * share});
    ValueId gateUp =
        tape.parameter(path("experts.gate_up"),
                       {experts.count, model.hidden, 2 * experts.hidden});
    ValueId down = tape.parameter(
        path("experts.down"), {experts.count, experts.hidden, model.hidden});
    ValueId sent = tape.view(tape.pickRows(flat, order),
                             {experts.count, share, model.hidden});
    std::vector<ValueId> parts =
        tape.split(tape.bmm(sent, gateUp), {experts.hidden, experts.hidden}, 2);
    ValueId out = tape.bmm(tape.mul(tape.silu(parts[0]), parts[1]), down);
    out = tape.view(out, {experts.count * share, model.hidden});
    ValueId back = tape.input(path("router.back"), {tokens * experts.perToken});
    out = tape.view(tape.pickRows(out, back),
                    {tokens, experts.perToken, model.hidden});
    // Which columns were chosen is data; the first ones stand for them.
    ValueId weight = tape.view(tape.slice(scores, 1, 0, experts.perToken),
                               {tokens, experts.perToken, 1});
    ValueId y =
        tape.view(tape.sumCopies(tape.mul(out, weight)), tape.shapeOf(x));
    if (experts.sharedHidden)
      y = tape.add(y, gatedMlp("shared", x, experts.sharedHidden));
    return y;
  }

  const ModelShape &model;
  const int64_t rows;
  GraphTape tape;
  std::string prefix;
  ValueId cosines = None, sines = None;
};

Error shapeError(std::string what, std::string fix) {
  return Error{"MP1201", ExitCode::BadInput, std::move(what), "",
               std::move(fix)};
}

/// So that no size or count leaves its type.
constexpr int64_t MostOfAnything = int64_t(1) << 26;
constexpr int64_t MostLayers = 10'000;

} // namespace

std::optional<Error> checkShape(const ModelShape &model) {
  for (auto [name, value] :
       {std::pair("layers", model.layers), std::pair("hidden", model.hidden),
        std::pair("heads", model.heads), std::pair("kv_heads", model.kvHeads),
        std::pair("vocabulary", model.vocabulary),
        std::pair("sequence", model.sequence)})
    if (value < 1 || value > MostOfAnything)
      return shapeError(
          fmt::format("a model with {} {}", value, name),
          fmt::format("give a number from 1 to {}", MostOfAnything));
  if (model.layers > MostLayers)
    return shapeError(fmt::format("a model of {} layers", model.layers),
                      fmt::format("at most {}", MostLayers));
  if (model.mlpHidden < 1 || model.mlpHidden > MostOfAnything)
    return shapeError(fmt::format("an MLP of width {}", model.mlpHidden),
                      "give intermediate_size");
  if (model.heads % model.kvHeads)
    return shapeError(fmt::format("{} heads over {} key/value heads",
                                  model.heads, model.kvHeads),
                      "key/value heads divide the heads");
  if ((model.headDim < 1 || model.headDim > MostOfAnything) && !model.latent)
    return shapeError("heads without a size", "give head_dim");
  if (model.experts &&
      (model.experts->count < 2 || model.experts->perToken < 1 ||
       model.experts->perToken > model.experts->count ||
       model.experts->hidden < 1 || model.experts->count > MostLayers ||
       model.experts->hidden > MostOfAnything ||
       model.experts->sharedHidden < 0 ||
       model.experts->sharedHidden > MostOfAnything ||
       model.experts->denseLayers < 0))
    return shapeError(fmt::format("{} of {} experts of width {}",
                                  model.experts->perToken, model.experts->count,
                                  model.experts->hidden),
                      "at least two experts, no more a token than there are");
  return std::nullopt;
}

Expected<Graph> buildGraph(const ModelShape &model) {
  if (std::optional<Error> error = checkShape(model))
    return *error;
  Graph graph = Decoder(model, 1).run();
  Graph larger = Decoder(model, 2).run();
  for (size_t value = 0; value < graph.values.size(); ++value)
    for (size_t dim = 0; dim < graph.values[value].shape.size(); ++dim)
      graph.values[value].batch[dim] =
          larger.values[value].shape[dim] - graph.values[value].shape[dim];
  if (std::optional<Error> error = verify(graph))
    return *error;
  return graph;
}

} // namespace monarch::planner
