//===- ReadConfig.cpp - a Hugging Face config.json to a shape -------------===//
//
// Names differ by family; each number is looked for under all of its names. A
// model type that is not known is read by the common names where they suffice.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"
#include "planner/families/ModelShape.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>

namespace monarch::planner {

namespace {

/// Above any size of a model: what is larger is refused later, and no product
/// of two overflows.
constexpr int64_t LargestNumber = int64_t(1) << 31;

class ConfigReader {
public:
  explicit ConfigReader(const Json &json) : json(json) {}

  std::optional<int64_t> find(std::initializer_list<const char *> names) const {
    for (const char *name : names)
      if (json.contains(name) && json[name].is_number_integer())
        return std::clamp(json[name].get<int64_t>(), -LargestNumber,
                          LargestNumber);
    return std::nullopt;
  }
  int64_t need(const char *what, std::initializer_list<const char *> names) {
    if (std::optional<int64_t> value = find(names))
      return *value;
    missing += fmt::format("{}{} ({})", missing.empty() ? "" : ", ", what,
                           *names.begin());
    return 0;
  }
  bool flag(const char *name, bool otherwise) const {
    return json.contains(name) && json[name].is_boolean()
               ? json[name].get<bool>()
               : otherwise;
  }

  const Json &json;
  std::string missing;
};

void readExperts(const ConfigReader &reader, ModelShape &shape) {
  auto count =
      reader.find({"num_experts", "num_local_experts", "n_routed_experts"});
  if (!count || *count < 2)
    return;
  ExpertShape experts;
  experts.count = *count;
  experts.perToken =
      reader.find({"num_experts_per_tok", "moe_topk", "top_k"}).value_or(1);
  experts.hidden =
      reader.find({"moe_intermediate_size"}).value_or(shape.mlpHidden);
  experts.sharedHidden =
      reader.find({"shared_expert_intermediate_size"})
          .value_or(reader.find({"n_shared_experts"}).value_or(0) *
                    experts.hidden);
  experts.denseLayers = reader.find({"first_k_dense_replace"}).value_or(0);
  shape.experts = experts;
}

void readLatent(const ConfigReader &reader, ModelShape &shape) {
  auto rank = reader.find({"kv_lora_rank"});
  if (!rank)
    return;
  LatentShape latent;
  latent.keyRank = *rank;
  latent.queryRank = reader.find({"q_lora_rank"}).value_or(0);
  latent.nopeDim = reader.find({"qk_nope_head_dim"}).value_or(128);
  latent.ropeDim = reader.find({"qk_rope_head_dim"}).value_or(64);
  latent.valueDim = reader.find({"v_head_dim"}).value_or(128);
  shape.latent = latent;
  shape.kvHeads = shape.heads;
}

} // namespace

Expected<ModelShape> readModelConfig(std::string_view text,
                                     const std::string &where,
                                     int64_t sequence) {
  auto json = parseJson(text, where);
  if (!json)
    return json.error();
  if (!json->is_object())
    return Error{"MP1202", ExitCode::BadInput, "the config is not an object",
                 where, "give the config.json of a decoder"};
  // A multimodal config keeps the decoder's numbers one level down.
  const Json &decoder =
      json->contains("text_config") && (*json)["text_config"].is_object()
          ? (*json)["text_config"]
          : *json;
  ConfigReader reader(decoder);
  static const std::set<std::string> gptTypes = {
      "gpt2", "gpt_neo", "gpt_neox",    "gptj",
      "opt",  "bloom",   "gpt_bigcode", "mpt"};
  ModelShape shape;
  std::string type =
      decoder.contains("model_type") && decoder["model_type"].is_string()
          ? decoder["model_type"].get<std::string>()
          : "";
  shape.family = gptTypes.count(type) ? ModelFamily::Gpt : ModelFamily::Llama;
  shape.layers = reader.need(
      "layers", {"num_hidden_layers", "n_layer", "n_layers", "num_layers"});
  shape.hidden = reader.need("width", {"hidden_size", "n_embd", "d_model"});
  shape.heads =
      reader.need("heads", {"num_attention_heads", "n_head", "n_heads"});
  shape.vocabulary = reader.need("vocabulary", {"vocab_size"});
  if (!reader.missing.empty())
    return Error{"MP1202", ExitCode::BadInput,
                 "the config lacks " + reader.missing, where,
                 "give the config.json of a decoder"};
  shape.kvHeads = reader.find({"num_key_value_heads", "num_kv_heads"})
                      .value_or(shape.heads);
  if (reader.flag("multi_query", false))
    shape.kvHeads = 1;
  shape.headDim =
      reader.find({"head_dim"})
          .value_or(shape.hidden / std::max<int64_t>(shape.heads, 1));
  shape.mlpHidden =
      reader
          .find({"intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size"})
          .value_or(4 * shape.hidden);
  shape.isGated = shape.family == ModelFamily::Llama;
  shape.isTied =
      reader.flag("tie_word_embeddings", shape.family == ModelFamily::Gpt);
  shape.sequence = sequence;
  readExperts(reader, shape);
  readLatent(reader, shape);
  return shape;
}

} // namespace monarch::planner
