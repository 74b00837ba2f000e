//===- ShapeWork.cpp - hyper-parameters to work, and in files -------------===//
#include "planner/families/ShapeWork.h"

namespace monarch::planner {

namespace {

constexpr int64_t Most = int64_t(1) << 32;

struct Count {
  const char *key;
  int64_t ModelShape::*member;
  int64_t low;
};
constexpr Count Counts[] = {{"layers", &ModelShape::layers, 1},
                            {"hidden", &ModelShape::hidden, 1},
                            {"heads", &ModelShape::heads, 1},
                            {"kv_heads", &ModelShape::kvHeads, 1},
                            {"head_dim", &ModelShape::headDim, 1},
                            {"mlp_hidden", &ModelShape::mlpHidden, 1},
                            {"vocabulary", &ModelShape::vocabulary, 1},
                            {"sequence", &ModelShape::sequence, 1}};

} // namespace

Expected<ModelWork> workOf(const ModelShape &shape, const KernelStyle &style) {
  // All of it: the small one has few layers.
  if (std::optional<Error> error = checkShape(shape))
    return *error;
  ModelShape small = shape;
  std::vector<int64_t> repeats = {shape.layers};
  const int64_t dense = shape.denseLayerCount();
  small.layers = 1;
  if (shape.experts && dense > 0 && dense < shape.layers) {
    small.layers = 2;
    small.experts->denseLayers = 1;
    repeats = {dense, shape.layers - dense};
  }
  const Expected<Graph> graph = buildGraph(small);
  if (!graph)
    return graph.error();
  return workOf(*graph, style, repeats);
}

Json shapeToJson(const ModelShape &shape) {
  Json json;
  json["family"] = shape.family == ModelFamily::Gpt ? "gpt" : "llama";
  for (const Count &count : Counts)
    json[count.key] = shape.*count.member;
  json["gated"] = shape.isGated;
  json["tied"] = shape.isTied;
  json["dropout"] = shape.dropout;
  json["type"] = toString(shape.type);
  if (shape.experts)
    json["experts"] = {{"count", shape.experts->count},
                       {"per_token", shape.experts->perToken},
                       {"hidden", shape.experts->hidden},
                       {"shared_hidden", shape.experts->sharedHidden},
                       {"dense_layers", shape.experts->denseLayers}};
  if (shape.latent)
    json["latent"] = {{"query_rank", shape.latent->queryRank},
                      {"key_rank", shape.latent->keyRank},
                      {"nope_dim", shape.latent->nopeDim},
                      {"rope_dim", shape.latent->ropeDim},
                      {"value_dim", shape.latent->valueDim}};
  return json;
}

ModelShape readShape(const JsonValue &json) {
  ModelShape shape;
  const std::string family = json["family"].string();
  if (family != "gpt" && family != "llama")
    json["family"].fail("must be \"gpt\" or \"llama\"");
  shape.family = family == "gpt" ? ModelFamily::Gpt : ModelFamily::Llama;
  for (const Count &count : Counts)
    shape.*count.member = json[count.key].integer(count.low, Most);
  shape.isGated = json["gated"].boolean();
  shape.isTied = json["tied"].boolean();
  shape.dropout = json["dropout"].number();
  const auto type = parseDType(json["type"].string());
  if (!type)
    json["type"].fail("is no type");
  shape.type = type.value_or(DType::BFloat16);
  if (const auto experts = json.find("experts")) {
    ExpertShape own;
    own.count = (*experts)["count"].integer(1, Most);
    own.perToken = (*experts)["per_token"].integer(1, Most);
    own.hidden = (*experts)["hidden"].integer(1, Most);
    own.sharedHidden = (*experts)["shared_hidden"].integer(0, Most);
    own.denseLayers = (*experts)["dense_layers"].integer(0, Most);
    shape.experts = own;
  }
  if (const auto latent = json.find("latent")) {
    LatentShape own;
    own.queryRank = (*latent)["query_rank"].integer(0, Most);
    own.keyRank = (*latent)["key_rank"].integer(1, Most);
    own.nopeDim = (*latent)["nope_dim"].integer(0, Most);
    own.ropeDim = (*latent)["rope_dim"].integer(0, Most);
    own.valueDim = (*latent)["value_dim"].integer(1, Most);
    shape.latent = own;
  }
  return shape;
}

} // namespace monarch::planner
