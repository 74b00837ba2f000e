//===- Row.cpp - a published measurement and what it leaves open ----------===//
#include "bench/ground_truth/Row.h"

#include "core/support/Files.h"

#include <algorithm>
#include <cmath>
#include <regex>

namespace monarch::bench {

namespace {

using namespace planner;

bool has(const Json &json, const char *key) {
  return json.contains(key) && !json[key].is_null();
}
std::string text(const Json &json, const char *key) {
  if (!has(json, key))
    return "";
  return json[key].is_string() ? json[key].get<std::string>()
                               : json[key].dump();
}
int64_t integer(const Json &json, const char *key, int64_t otherwise) {
  return has(json, key) && json[key].is_number()
             ? static_cast<int64_t>(json[key].get<double>())
             : otherwise;
}
bool contains(const std::string &text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

bool matches(const Source &source, const Json &json) {
  for (const auto &[field, part] : source.match)
    if (!has(json, field.c_str()) || !contains(text(json, field.c_str()), part))
      return false;
  return true;
}

ModelShape modelOf(const Json &json, const Source &source) {
  ModelShape model;
  model.family = json.value("gated_mlp", Json()).is_boolean() &&
                         json["gated_mlp"].get<bool>()
                     ? ModelFamily::Llama
                     : ModelFamily::Gpt;
  model.layers = integer(json, "layers", 0);
  model.hidden = integer(json, "hidden", 0);
  model.heads = integer(json, "heads", 1);
  model.kvHeads = integer(json, "kv_heads", model.heads);
  model.headDim = integer(json, "head_dim", model.hidden / model.heads);
  model.mlpHidden = integer(json, "ffn_hidden", 4 * model.hidden);
  model.vocabulary = integer(json, "vocab", source.vocabulary);
  model.sequence = integer(json, "seq_len", source.sequence);
  model.isTied =
      model.family == ModelFamily::Gpt && text(json, "untied") != "true";
  model.dropout = model.family == ModelFamily::Gpt ? source.dropout : 0;
  if (has(json, "experts")) {
    ExpertShape experts;
    experts.count = integer(json, "experts", 0);
    experts.perToken = integer(json, "experts_topk", 1);
    experts.hidden = integer(json, "moe_ffn_hidden", model.mlpHidden);
    const std::string name = text(json, "model");
    if (contains(name, "DeepSeek") || contains(name, "Kimi")) {
      // Both papers: MLA of these ranks, one shared expert, dense first layers.
      experts.sharedHidden = experts.hidden;
      experts.denseLayers = contains(name, "DeepSeek") ? 3 : 1;
      model.latent = LatentShape{1536, 512};
      model.mlpHidden = 18432;
    }
    model.experts = experts;
    model.family = ModelFamily::Llama;
    model.isTied = false;
  }
  return model;
}

/// "8x 200 Gb/s", "1600 Gb/s RoCE per node", "400 Gb/s per GPU", "2 Tb/s".
void readNetwork(const std::string &text, Machine &machine) {
  constexpr double BytesPerGigabit = 1e9 / 8;
  std::smatch found;
  static const std::regex several(R"((\d+)x (\d+) Gb/s)");
  static const std::regex perDevice(R"((\d+) Gb/s[^;,]*per GPU)");
  static const std::regex total(R"((\d+) Gb/s)");
  static const std::regex terabit(R"((\d+) Tb/s)");
  const double perNic =
      (machine.device.generation >= Generation::Hopper ? 400 : 200) *
      BytesPerGigabit;
  auto number = [&](int group) { return std::stod(found[group].str()); };
  if (std::regex_search(text, found, several)) {
    machine.nics = static_cast<int64_t>(number(1));
    machine.nodeNicBytesPerSecond = number(1) * number(2) * BytesPerGigabit;
    return;
  }
  if (std::regex_search(text, found, perDevice))
    machine.nodeNicBytesPerSecond = 8 * number(1) * BytesPerGigabit;
  else if (std::regex_search(text, found, terabit))
    machine.nodeNicBytesPerSecond = 1000 * number(1) * BytesPerGigabit;
  else if (std::regex_search(text, found, total))
    machine.nodeNicBytesPerSecond = number(1) * BytesPerGigabit;
  else
    return;
  machine.nics = std::clamp<int64_t>(
      std::llround(machine.nodeNicBytesPerSecond / perNic), 1, 8);
}

Expected<Machine> machineOf(const Json &json, const Source &source) {
  std::string name = text(json, "gpu");
  // "V100-SXM3-32GB (DGX-2)", "Grand Teton H100 96GB ..."
  if (contains(name, "Grand Teton"))
    name = "H100-SXM5-96GB";
  name = name.substr(0, name.find(" ("));
  if (name == "A100-80GB")
    name = "A100-SXM4-80GB";
  auto device = findDevice(name);
  if (!device)
    return device.error();
  Machine machine;
  machine.device = *device;
  machine.devices = integer(json, "n_gpus", 1);
  machine.devicesPerNode =
      std::min<int64_t>(integer(json, "gpus_per_node", 8), 16);
  machine.nodeNicBytesPerSecond = device->nodeNicBytesPerSecond;
  machine.nics = device->nics;
  readNetwork(text(json, "interconnect"), machine);
  if (source.nodeNicBytesPerSecond)
    machine.nodeNicBytesPerSecond = *source.nodeNicBytesPerSecond;
  if (source.nics)
    machine.nics = *source.nics;
  return machine;
}

void readSharding(const std::string &sharding, StepLayout &layout,
                  const Machine &machine) {
  if (contains(sharding, "fsdp") || contains(sharding, "zero3") ||
      contains(sharding, "hsdp"))
    layout.sharding = Sharding::Parameters;
  else if (contains(sharding, "zero") || contains(sharding, "dist_opt"))
    layout.sharding = Sharding::Optimizer;
  if (contains(sharding, "hsdp"))
    layout.shardGroup = machine.devicesPerNode;
  const std::string groups = "groups of ";
  if (size_t at = sharding.find(groups); at != std::string::npos)
    layout.shardGroup = std::stoll(sharding.substr(at + groups.size()));
}

void readRecompute(const std::string &recompute, StepLayout &layout) {
  if (recompute.starts_with("full"))
    layout.recompute = Recompute::Full;
  else if (contains(recompute, "per_op"))
    layout.recompute = Recompute::PerOp;
  else if (contains(recompute, "core_attn") ||
           contains(recompute, "core_attention"))
    layout.recompute = Recompute::CoreAttention;
  layout.recomputesMlp = contains(recompute, "mlp");
}

StepLayout layoutOf(const Json &json, const Row &row) {
  StepLayout layout;
  layout.tp = integer(json, "tp", 1);
  layout.pp = integer(json, "pp", 1);
  layout.cp = integer(json, "cp", 1);
  layout.ep = integer(json, "ep", 1);
  layout.dp =
      integer(json, "dp",
              std::max<int64_t>(1, row.machine.devices /
                                       (layout.tp * layout.pp * layout.cp)));
  layout.chunks = integer(json, "virtual_pp", 1);
  layout.microBatch = integer(json, "micro_batch", 1);
  layout.globalBatch = integer(json, "global_batch_sequences", 1);
  layout.isSequenceParallel =
      has(json, "sequence_parallel")
          ? json["sequence_parallel"].get<bool>()
          : row.target.defaultsToSequenceParallel && layout.tp > 1;
  readSharding(has(json, "sharding") ? text(json, "sharding")
                                     : row.source->sharding,
               layout, row.machine);
  readRecompute(text(json, "recompute"), layout);
  const std::string schedule = text(json, "schedule");
  if (schedule == "ZB-1p")
    layout.schedule = Schedule::ZeroBubble1;
  if (schedule == "ZB-2p")
    layout.schedule = Schedule::ZeroBubble2;
  layout.precision = contains(text(json, "precision"), "fp8") ? Precision::Fp8
                                                              : Precision::Half;
  if (row.source->endsOneLayerFewer && layout.pp > 1) {
    layout.stageLayers.assign(static_cast<size_t>(layout.pp),
                              (row.model.layers + 2) / layout.pp);
    --layout.stageLayers.front();
    --layout.stageLayers.back();
  }
  return layout;
}

/// All layouts that the open fields allow.
std::vector<StepLayout> openLayouts(const Json &json, const Row &row) {
  std::vector<StepLayout> layouts = {layoutOf(json, row)};
  if (!has(json, "micro_batch") && has(json, "global_batch_sequences")) {
    const StepLayout base = layouts[0];
    const int64_t rows = base.globalBatch / base.dp;
    layouts.clear();
    for (int64_t size : {1, 2, 4, 8, 16})
      if (rows % size == 0) {
        layouts.push_back(base);
        layouts.back().microBatch = size;
      }
    if (layouts.empty())
      layouts.push_back(base);
  }
  if (!has(json, "virtual_pp") && layouts[0].pp > 1 && row.source->isTuned) {
    const std::vector<StepLayout> bases = std::exchange(layouts, {});
    for (const StepLayout &base : bases)
      for (int64_t chunks : {1, 2, 3, 4})
        if (row.model.layers % (base.pp * chunks) == 0) {
          layouts.push_back(base);
          layouts.back().chunks = chunks;
        }
    if (layouts.empty())
      layouts = bases;
  }
  if (!has(json, "recompute")) {
    const std::vector<StepLayout> bases = layouts;
    for (Recompute mode : {Recompute::CoreAttention, Recompute::Full})
      for (StepLayout layout : bases) {
        layout.recompute = mode;
        layouts.push_back(layout);
      }
  }
  return layouts;
}

/// Records that give a model by the arguments of its command line.
Json spelledOut(const Json &record) {
  if (!record.contains("megatron_args"))
    return record;
  Json json = record;
  const Json &from = record["megatron_args"];
  static const std::pair<const char *, const char *> names[] = {
      {"num_layers", "layers"},
      {"hidden_size", "hidden"},
      {"num_attention_heads", "heads"},
      {"num_query_groups", "kv_heads"},
      {"ffn_hidden_size", "ffn_hidden"},
      {"vocab_size", "vocab"},
      {"seq_length", "seq_len"},
      {"micro_batch_size", "micro_batch"},
      {"global_batch_size", "global_batch_sequences"},
      {"sequence_parallel", "sequence_parallel"}};
  for (auto [theirs, own] : names)
    if (from.contains(theirs))
      json[own] = from[theirs];
  if (from.value("use_distributed_optimizer", false))
    json["sharding"] = "dist_optimizer";
  if (from.contains("num_layers_per_virtual_pipeline_stage"))
    json["virtual_pp"] =
        from["num_layers"].get<int64_t>() / integer(record, "pp", 1) /
        from["num_layers_per_virtual_pipeline_stage"].get<int64_t>();
  json["gated_mlp"] = from.value("swiglu", false);
  json["untied"] = from.value("untie_embeddings_and_output_weights", false);
  return json;
}

} // namespace

Expected<std::vector<Source>> readSources(const std::string &path) {
  auto content = readFile(path);
  if (!content)
    return content.error();
  auto json = parseJson(*content, path);
  if (!json)
    return json.error();
  std::vector<Source> sources;
  for (const Json &entry : (*json)["sources"]) {
    Source source;
    source.key = entry["key"];
    for (const auto &[field, part] : entry["match"].items())
      source.match.emplace_back(field, part.get<std::string>());
    source.target = entry["target"];
    source.dropout = entry.value("dropout", 0.0);
    source.sequence = entry.value("sequence", int64_t(1));
    source.vocabulary = entry.value("vocabulary", int64_t(50257));
    source.isTuned = entry.value("tuned", false);
    source.endsOneLayerFewer = entry.value("ends_one_layer_fewer", false);
    if (entry.contains("node_nic_gbytes_per_s"))
      source.nodeNicBytesPerSecond =
          entry["node_nic_gbytes_per_s"].get<double>() * 1e9;
    if (entry.contains("nics"))
      source.nics = entry["nics"].get<int64_t>();
    source.hasNewRings = entry.value("new_rings", false);
    source.tensorDelaySeconds = entry.value("tensor_delay_seconds", 0.0);
    source.weight = entry.value("weight", 0.0);
    source.sharding = entry.value("sharding", "");
    source.leftOut = entry.value("left_out", "");
    sources.push_back(source);
  }
  return sources;
}

Expected<Reading> readRows(const std::string &path,
                           const std::vector<Source> &sources, bool needsTime) {
  auto content = readFile(path);
  if (!content)
    return content.error();
  auto json = parseJson(*content, path);
  if (!json)
    return json.error();
  Reading reading;
  for (const Json &record : *json) {
    Row row;
    row.id = text(record, "id");
    row.json = spelledOut(record);
    const Json &entry = row.json;
    row.split = text(entry, "suggested_split");
    auto leave = [&](std::string why) {
      reading.leftOut.emplace_back(row.id, std::move(why));
    };
    auto source =
        std::find_if(sources.begin(), sources.end(),
                     [&](const Source &each) { return matches(each, entry); });
    if (source == sources.end()) {
      leave("no entry of sources.json matches");
      continue;
    }
    row.source = &*source;
    if (!source->leftOut.empty()) {
      leave(source->leftOut);
      continue;
    }
    row.isSuspect = has(entry, "suspect") && entry["suspect"] != false;
    const bool isLayer = has(entry, "layer_forward_ms");
    if (!has(entry, "layers") || !has(entry, "hidden")) {
      leave("no dimensions");
      continue;
    }
    if (!needsTime && !has(entry, "global_batch_sequences"))
      row.json["global_batch_sequences"] =
          integer(entry, "micro_batch", 1) * integer(entry, "dp", 1) *
          integer(entry, "gradient_accumulation", 1);
    if (needsTime && !isLayer &&
        (!has(entry, "target_seconds_per_iteration") ||
         !has(entry, "global_batch_sequences") ||
         text(entry, "oom") == "true")) {
      leave("no time or batch");
      continue;
    }
    row.model = modelOf(entry, *source);
    auto target = findTarget(source->target);
    if (!target)
      return target.error();
    row.target = *target;
    if (source->hasNewRings)
      row.target.hasOldRings = false;
    auto machine = machineOf(entry, *source);
    if (!machine) {
      leave(machine.error().what);
      continue;
    }
    row.machine = *machine;
    row.layouts = openLayouts(entry, row);
    if (isLayer) {
      row.layerForward = entry["layer_forward_ms"].get<double>() / 1e3;
      row.layerBackward = entry["layer_backward_ms"].get<double>() / 1e3;
    } else if (needsTime) {
      row.seconds = entry["target_seconds_per_iteration"];
    }
    reading.rows.push_back(std::move(row));
  }
  return reading;
}

} // namespace monarch::bench
