//===- InferenceText.cpp - what serving comes to, for people and as JSON --===//
#include "planner/choose/Inference.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace monarch::planner {

namespace {

constexpr double GiB = 1024.0 * 1024 * 1024;

std::string seconds(double value) {
  return value < 1 ? fmt::format("{:.3g} ms", value * 1e3)
                   : fmt::format("{:.3g} s", value);
}

} // namespace

std::string summarize(const InferenceEstimate &e, const Machine &machine,
                      const InferenceRequest &request) {
  const double overhead = servingTarget().contextGiB;
  const double reserved = machine.device.memoryBytes * (1 - request.headroom);
  std::string text = fmt::format(
      "{} x {} serving: tp {} x pp {} x {} replicas{}\n", machine.devices,
      machine.device.name, e.tp, e.pp, e.replicas,
      e.idleDevices > 0 ? fmt::format(", {} idle", e.idleDevices) : "");
  text += fmt::format("stages    {} layers\n", fmt::join(e.stageLayers, " + "));
  text += fmt::format(
      "needed    {:.1f} GiB a device: weights {:.1f}, keys and values {:.2f} "
      "({} x {:g} tokens), activations {:.2f}, context {:.1f}\n",
      e.needed() / GiB + overhead, e.weights / GiB, e.keysAndValues / GiB,
      request.concurrency, request.length, e.activations / GiB, overhead);
  text += fmt::format(
      "reserved  {:.1f} of {:.1f} GiB, by design ({:.0f} % of the card, "
      "--memory-share): what is not needed holds more keys and values\n",
      reserved / GiB, machine.device.memoryBytes / GiB,
      100 * (1 - request.headroom));
  text += fmt::format(
      "limits    one sequence of {} tokens, or {} sequences of {:g}; {:.0f} "
      "bytes of keys and values a token on the fullest device\n",
      e.maxLength, e.maxConcurrency, request.length, e.keyValueBytesPerToken);
  return text +
         fmt::format("speed     first token {}, then one each {}; {:.0f} "
                     "tokens/s of all replicas\n",
                     seconds(e.prefillSeconds), seconds(e.tokenSeconds),
                     e.tokensPerSecond);
}

Json toJson(const InferenceEstimate &e, const Machine &machine,
            const InferenceRequest &request) {
  const double overhead = servingTarget().contextGiB * GiB;
  Json json;
  json["device"] = machine.device.name;
  json["devices"] = machine.devices;
  json["degrees"] = {{"tp", e.tp}, {"pp", e.pp}, {"replicas", e.replicas}};
  json["stage_layers"] = e.stageLayers;
  json["idle_devices"] = e.idleDevices;
  json["fits"] = e.fits;
  json["needed_bytes"] = {{"total", rounded(e.needed() + overhead)},
                          {"weights", rounded(e.weights)},
                          {"keys_and_values", rounded(e.keysAndValues)},
                          {"activations", rounded(e.activations)},
                          {"context", rounded(overhead)}};
  json["reserved_bytes"] =
      rounded(machine.device.memoryBytes * (1 - request.headroom));
  json["key_value_bytes_per_token"] = rounded(e.keyValueBytesPerToken);
  json["concurrency"] = request.concurrency;
  json["length"] = static_cast<int64_t>(request.length);
  json["max_length"] = e.maxLength;
  json["max_concurrency"] = e.maxConcurrency;
  json["prefill_seconds"] = rounded(e.prefillSeconds);
  json["token_seconds"] = rounded(e.tokenSeconds);
  json["tokens_per_second"] = rounded(e.tokensPerSecond);
  return json;
}

std::string summarize(const MixedServing &choice,
                      const std::vector<Machine> &parts) {
  std::string text = fmt::format("serving on {} devices, a stage on each\n",
                                 choice.stages.size());
  for (const ServingStage &stage : choice.stages)
    text += fmt::format("  {}: {} layers, {:.1f} of {:.1f} GiB\n",
                        parts[stage.part].device.name, stage.layers,
                        stage.needed / GiB, stage.usableBytes / GiB);
  return text + fmt::format("limits    one sequence of {} tokens\nspeed     "
                            "first token {}, then one each {}\n",
                            choice.maxLength, seconds(choice.prefillSeconds),
                            seconds(choice.tokenSeconds));
}

Json toJson(const MixedServing &choice, const std::vector<Machine> &parts) {
  Json json;
  json["stages"] = Json::array();
  for (const ServingStage &stage : choice.stages)
    json["stages"].push_back({{"device", parts[stage.part].device.name},
                              {"layers", stage.layers},
                              {"needed_bytes", rounded(stage.needed)},
                              {"usable_bytes", rounded(stage.usableBytes)}});
  json["max_length"] = choice.maxLength;
  json["prefill_seconds"] = rounded(choice.prefillSeconds);
  json["token_seconds"] = rounded(choice.tokenSeconds);
  return json;
}

} // namespace monarch::planner
