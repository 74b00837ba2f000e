//===- ReadData.cpp - constants, devices and targets from their files -----===//
//
// The files are built in and covered by tests, so a mistake in one is a
// programming error, not an input error.
//
//===----------------------------------------------------------------------===//
#include "core/support/Json.h"
#include "planner/step/Band.h"
#include "planner/step/Constants.h"
#include "planner/step/Machine.h"
#include "planner/step/StepData.h"
#include "planner/step/Target.h"

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <map>

namespace monarch::planner {

namespace {

constexpr double Giga = 1e9, Tera = 1e12;

Generation parseGeneration(const std::string &text) {
  static const std::map<std::string, Generation> names = {
      {"volta", Generation::Volta},   {"turing", Generation::Turing},
      {"ampere", Generation::Ampere}, {"ada", Generation::Ada},
      {"hopper", Generation::Hopper}, {"blackwell", Generation::Blackwell}};
  return names.at(text);
}

std::vector<DeviceModel> readDevices() {
  Json data = Json::parse(stepData("devices"));
  std::vector<DeviceModel> devices;
  std::map<Generation, std::vector<double>> shares, fp8Shares;
  for (const Json &entry : data["devices"]) {
    DeviceModel device;
    device.name = entry["name"];
    device.generation = parseGeneration(entry["generation"]);
    device.memoryBytes = entry["memory_gb"].get<double>() * Giga;
    device.memoryBytesPerSecond =
        entry["memory_gbytes_per_s"].get<double>() * Giga;
    device.peakFlops = entry["peak_tflops"].get<double>() * Tera;
    device.fp8PeakFlops = entry.value("fp8_peak_tflops", 0.0) * Tera;
    device.vectorFlops = entry["vector_tflops"].get<double>() * Tera;
    device.multiprocessors = entry["multiprocessors"];
    device.sustained = entry.value("sustained", 1.0);
    device.linkBytesPerSecond = entry["link_gbytes_per_s"].get<double>() * Giga;
    device.linkDomain = entry.value("link_domain", 8);
    device.nodeNicBytesPerSecond =
        entry["node_nic_gbytes_per_s"].get<double>() * Giga;
    device.nics = entry["nics"];
    device.ceilingFlops = entry.value("ceiling_tflops", 0.0) * Tera;
    device.fp8CeilingFlops = entry.value("fp8_ceiling_tflops", 0.0) * Tera;
    device.isMeasured = device.ceilingFlops > 0;
    device.source = entry["source"];
    device.hasNvlink = entry["link"] == "nvlink";
    for (const Json &name : entry["recalled"])
      device.unverified +=
          (device.unverified.empty() ? "" : ", ") + name.get<std::string>();
    if (device.isMeasured)
      shares[device.generation].push_back(device.ceilingFlops /
                                          device.peakFlops);
    if (device.fp8CeilingFlops > 0)
      fp8Shares[device.generation].push_back(device.fp8CeilingFlops /
                                             device.fp8PeakFlops);
    devices.push_back(device);
  }
  // The median share of the generation, of the one before where it has none.
  auto share = [](std::map<Generation, std::vector<double>> &table,
                  Generation generation) {
    for (int g = static_cast<int>(generation); g >= 0; --g) {
      auto found = table.find(static_cast<Generation>(g));
      if (found == table.end())
        continue;
      std::vector<double> &list = found->second;
      std::sort(list.begin(), list.end());
      return list[list.size() / 2];
    }
    return 0.75;
  };
  for (DeviceModel &device : devices) {
    if (device.ceilingFlops == 0)
      device.ceilingFlops = device.peakFlops * share(shares, device.generation);
    if (device.fp8CeilingFlops == 0)
      device.fp8CeilingFlops =
          device.fp8PeakFlops > 0
              ? device.fp8PeakFlops * share(fp8Shares, device.generation)
              : device.ceilingFlops;
  }
  return devices;
}

Target readTarget(const Json &entry) {
  static const std::map<std::string, Fusion> fusions = {
      {"none", Fusion::None},
      {"local", Fusion::Local},
      {"compiled", Fusion::Compiled}};
  static const std::map<std::string, AttentionKernel> kernels = {
      {"spelled", AttentionKernel::Spelled},
      {"flash1", AttentionKernel::Flash1},
      {"flash2", AttentionKernel::Flash2},
      {"flash3", AttentionKernel::Flash3}};
  static const std::map<std::string, Sharding> shardings = {
      {"none", Sharding::None},
      {"optimizer", Sharding::Optimizer},
      {"gradients", Sharding::Gradients},
      {"parameters", Sharding::Parameters}};
  Target t;
  t.name = entry["name"];
  t.description = entry["description"];
  t.style.fusion = fusions.at(entry["fusion"]);
  t.style.hasOwnModules = entry["own_modules"];
  t.attention = kernels.at(entry["attention"]);
  t.pointwiseTraffic = entry.value("pointwise_traffic", 1.0);
  t.launches = entry.value("launches", 1.0);
  t.expertLaunches = entry.value("expert_launches", 0.0);
  t.gradientBytes = entry["gradient_bytes"];
  t.accumulateBytes = entry["accumulate_bytes"];
  t.optimizerBytes = entry["optimizer_bytes"];
  t.dataOverlap = entry.value("data_overlap", 0.0);
  t.tensorOverlap = entry.value("tensor_overlap", 0.0);
  t.backwardTensorOverlap = entry.value("backward_tensor_overlap", 0.0);
  t.pipelineOverlap = entry.value("pipeline_overlap", 0.0);
  t.isFullySharded = entry.value("fully_sharded", false);
  t.gathersAlone = entry.value("gathers_alone", false);
  t.scattersSends = entry.value("scatters_sends", false);
  t.hasOldRings = entry.value("old_rings", false);
  t.reducesTiedTable = entry.value("reduces_tied_table", false);
  t.broadcastsShards = entry.value("broadcasts_shards", false);
  t.defaultsToSequenceParallel =
      entry.value("sequence_parallel_by_default", false);
  t.weightBytes = entry.value("weight_bytes", 2.0);
  t.restBytes = entry.value("weight_bytes_at_rest", t.weightBytes);
  t.mainGradientBytes = entry.value("main_gradient_bytes", 4.0);
  t.optimizerStateBytes = entry.value("optimizer_state_bytes", 12.0);
  t.logitBytes = entry.value("logit_bytes", 10.0);
  t.chunkedLogitBytes = entry.value("chunked_logit_bytes", 6.0);
  t.scoreBytes = entry.value("score_bytes", 5.0);
  t.fragmentation = entry.value("fragmentation", 0.0);
  t.contextGiB = entry.value("context_gib", 1.6);
  t.maxSharding = shardings.at(entry["max_sharding"]);
  t.hasTensor = entry.value("tensor", true);
  t.hasPipeline = entry.value("pipeline", true);
  t.hasInterleaving = entry.value("interleaving", true);
  t.hasSequence = t.hasTensor && entry.value("sequence", true);
  t.hasContext = entry.value("context", false);
  t.hasExpert = entry.value("expert", false);
  t.hasZeroBubble = entry.value("zero_bubble", false);
  t.hasGPipe = entry.value("gpipe", false);
  t.hasZeroBubbleV = entry.value("zero_bubble_v", false);
  t.hasVHalf = entry.value("v_half", false);
  t.hasOffload = entry.value("offload", false);
  t.hasSelectiveRecompute = entry.value("selective_recompute", true);
  t.leastInterleavedStages =
      entry.value("least_interleaved_stages", int64_t{2});
  return t;
}

/// "a100-sxm4-80gb" and "A100 SXM 80GB" alike.
std::string normalised(std::string_view name) {
  std::string text, previous;
  for (char raw : name) {
    const char c =
        static_cast<char>(std::tolower(static_cast<unsigned char>(raw)));
    // The digit right after "SXM" names a generation.
    bool isGeneration = previous.ends_with("sxm") && c >= '0' && c <= '9';
    previous += c;
    if (!isGeneration && std::isalnum(static_cast<unsigned char>(c)))
      text += c;
  }
  return text;
}

size_t commonPrefix(std::string_view a, std::string_view b) {
  size_t length = 0;
  while (length < a.size() && length < b.size() && a[length] == b[length])
    ++length;
  return length;
}

} // namespace

const std::vector<ConstantField> &constantFields() {
  static const std::vector<ConstantField> fields = {
      {"product_share", &Constants::productShare},
      {"tile_ramp", &Constants::tileRamp},
      {"wave_loss", &Constants::waveLoss},
      {"memory_share", &Constants::memoryShare},
      {"kernel_seconds", &Constants::kernelSeconds},
      {"launch_seconds", &Constants::launchSeconds},
      {"flash_share", &Constants::flashShare},
      {"link_share", &Constants::linkShare},
      {"nic_share", &Constants::nicShare},
      {"flow_bytes_per_second", &Constants::flowBytesPerSecond},
      {"collective_seconds", &Constants::collectiveSeconds},
      {"hop_seconds", &Constants::hopSeconds},
      {"node_hop_seconds", &Constants::nodeHopSeconds},
      {"send_share", &Constants::sendShare},
      {"send_seconds", &Constants::sendSeconds},
      {"step_seconds", &Constants::stepSeconds},
      {"overlap_loss", &Constants::overlapLoss},
      {"pointwise_traffic", &Constants::pointwiseTraffic},
      {"optimizer_traffic", &Constants::optimizerTraffic},
      {"power_headroom", &Constants::powerHeadroom},
      {"host_update", &Constants::hostUpdateSeconds}};
  return fields;
}

const Constants &builtInConstants() {
  static const Constants constants = [] {
    Constants read;
    Json data = Json::parse(stepData("constants"));
    for (const Json &entry : data["constants"])
      for (const ConstantField &field : constantFields())
        if (field.name == entry["name"].get<std::string>())
          read.*field.member = entry["value"];
    return read;
  }();
  return constants;
}

const BandTerms &builtInBand() {
  static const BandTerms terms = [] {
    Json data = Json::parse(stepData("constants"));
    const Json &band = data["band"];
    BandTerms read;
    read.base = band["base"];
    read.unsteady = band["unsteady"];
    read.host = band["host"];
    read.experts = band["experts"];
    read.fp8 = band["fp8"];
    read.context = band["context"];
    read.unmeasured = band["unmeasured"];
    read.open = band["open"];
    read.generation = band["generation"];
    return read;
  }();
  return terms;
}

std::vector<ConstantRange> fittedConstants() {
  std::vector<ConstantRange> ranges;
  Json data = Json::parse(stepData("constants"));
  for (const Json &entry : data["constants"])
    for (const ConstantField &field : constantFields())
      if (field.name == entry["name"].get<std::string>() &&
          entry.value("fitted", false))
        ranges.push_back({field, entry["range"][0], entry["range"][1]});
  return ranges;
}

const std::vector<DeviceModel> &deviceModels() {
  static const std::vector<DeviceModel> devices = readDevices();
  return devices;
}

Expected<DeviceModel> findDevice(std::string_view name) {
  const std::string wanted = normalised(name);
  std::vector<const DeviceModel *> starting;
  std::vector<std::pair<size_t, std::string>> near;
  for (const DeviceModel &device : deviceModels()) {
    const std::string own = normalised(device.name);
    if (own == wanted)
      return device;
    if (!wanted.empty() && own.starts_with(wanted))
      starting.push_back(&device);
    near.emplace_back(commonPrefix(own, wanted), device.name);
  }
  if (starting.size() == 1)
    return *starting.front();
  std::string list;
  if (!starting.empty()) {
    for (const DeviceModel *device : starting)
      list += (list.empty() ? "" : ", ") + device->name;
    return Error{"MP1103", ExitCode::BadInput,
                 fmt::format("\"{}\" may be several devices", name), "",
                 "write one of " + list};
  }
  std::stable_sort(near.begin(), near.end(),
                   [](auto &a, auto &b) { return a.first > b.first; });
  for (size_t i = 0; i < 4; ++i)
    list += (list.empty() ? "" : ", ") + near[i].second;
  return Error{"MP1103", ExitCode::BadInput,
               fmt::format("no device \"{}\"", name), "", "near it: " + list};
}

bool namesDevices(std::string_view name) {
  const std::string wanted = normalised(name);
  for (const DeviceModel &device : deviceModels())
    if (!wanted.empty() && normalised(device.name).starts_with(wanted))
      return true;
  return false;
}

Machine usualBoxes(const DeviceModel &device, int64_t devices) {
  Machine machine;
  machine.device = device;
  machine.devices = devices;
  machine.nodeNicBytesPerSecond = device.nodeNicBytesPerSecond;
  machine.nics = device.nics;
  return machine;
}

const std::vector<Target> &targets() {
  static const std::vector<Target> list = [] {
    std::vector<Target> read;
    Json data = Json::parse(stepData("targets"));
    for (const Json &entry : data["targets"])
      read.push_back(readTarget(entry));
    return read;
  }();
  return list;
}

Expected<Target> findTarget(std::string_view name) {
  std::string known;
  for (const Target &target : targets()) {
    if (target.name == name)
      return target;
    known += (known.empty() ? "" : ", ") + target.name;
  }
  return Error{"MP3301", ExitCode::Usage, fmt::format("no target \"{}\"", name),
               "--target", "targets are " + known};
}

} // namespace monarch::planner
