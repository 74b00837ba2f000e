//===- Host.cpp - the present host ----------------------------------------===//
#include "planner/cluster/import/Parts.h"

#include <algorithm>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

struct Card {
  std::string name;
  double totalMiB = 0, usedMiB = 0;
};

Expected<std::vector<Card>> readCards(std::string_view csv) {
  std::vector<Card> cards;
  const std::vector<std::string> lines = linesOf(csv);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i]).empty())
      continue;
    std::vector<std::string> fields;
    std::string rest = lines[i] + ",";
    while (!rest.empty()) {
      const size_t end = rest.find(',');
      fields.push_back(trimmed(rest.substr(0, end)));
      rest.erase(0, end + 1);
    }
    const std::string place = fmt::format("nvidia-smi, line {}", i + 1);
    const auto total = fields.size() > 2 ? numberOf(fields[1]) : std::nullopt;
    const auto used = fields.size() > 2 ? numberOf(fields[2]) : std::nullopt;
    if (!total || !used || *total < 1 || *used > *total)
      return importError(fmt::format("\"{}\" does not say a name and memory",
                                     trimmed(lines[i])),
                         place,
                         "look at nvidia-smi "
                         "--query-gpu=name,memory.total,memory.used");
    if (fields.size() > 3 && fields[3] == "Enabled")
      return Error{"MP1107", ExitCode::Infeasible,
                   fields[0] + " is cut into slices (MIG): collectives between "
                               "slices are not supported",
                   place,
                   "plan for whole GPUs, for one slice, or rehearse on cpu:N"};
    cards.push_back(
        {fields[0], static_cast<double>(*total), static_cast<double>(*used)});
  }
  if (cards.empty())
    return importError("nvidia-smi lists no GPU", "nvidia-smi",
                       "plan for cpu:N here, or detect on a host with GPUs");
  return cards;
}

} // namespace

Expected<Json> importSmiQuery(std::string_view csv, std::string_view matrix) {
  const auto cards = readCards(csv);
  if (!cards)
    return cards.error();
  for (const Card &card : *cards)
    if (card.name != cards->front().name)
      return Error{"MP1108", ExitCode::Unsupported,
                   fmt::format("devices of several kinds: {} and {}",
                               cards->front().name, card.name),
                   "nvidia-smi",
                   "hide one kind with CUDA_VISIBLE_DEVICES and describe the "
                   "other in a file of its own"};
  constexpr double MiB = 1024.0 * 1024;
  double total = cards->front().totalMiB, most = 0;
  for (const Card &card : *cards) {
    total = std::min(total, card.totalMiB);
    most = std::max(most, card.usedMiB);
  }
  const auto device = deviceOfProduct(cards->front().name, total * MiB);
  if (!device)
    return device.error();
  const int64_t count = static_cast<int64_t>(cards->size());
  Json document;
  if (trimmed(matrix).empty()) {
    document = documentOf(*device, count, "");
  } else {
    auto imported = importTopologyMatrix(matrix, *device);
    if (!imported)
      return imported;
    document = std::move(*imported);
    document["extends"] = fmt::format("{}x{}", count, *device);
  }
  document["provenance"]["imported"] = "nvidia-smi on this host";
  document["provenance"]["product"] = cards->front().name;
  Json &own = document["devices"][*device];
  own["memory"] = fmt::format("{:.0f}MiB", total);
  // Room for a context; and what others use now is not there for a plan.
  constexpr double ContextMiB = 1536, LargeMiB = 40'000, LargeContextMiB = 2861;
  const double context = total >= LargeMiB ? LargeContextMiB : ContextMiB;
  own["reserved"] = fmt::format("{:.0f}MiB", std::min(total, context + most));
  document["provenance"]["memory"] = fmt::format(
      "as the driver reports it; {:.0f} MiB in use on the fullest device",
      most);
  return document;
}

Expected<Json> importHost(std::string_view cpuInfo, std::string_view memInfo) {
  int64_t processors = 0;
  for (const std::string &line : linesOf(cpuInfo))
    processors += line.starts_with("processor") ? 1 : 0;
  int64_t totalKiB = 0;
  for (const std::string &line : linesOf(memInfo)) {
    const std::vector<std::string> words = wordsOf(line);
    if (words.size() >= 2 && words[0] == "MemTotal:")
      totalKiB = numberOf(words[1]).value_or(0);
  }
  if (processors < 1 || totalKiB < 1)
    return importError("the host does not say its processors and memory",
                       "/proc", "write cpu:N for N local ranks");
  Json document;
  document["schema"] = "monarch.cluster/1";
  document["extends"] = fmt::format("cpu:{}", processors);
  Json &own = document["devices"]["cpu"];
  own["memory"] = fmt::format("{}KiB", totalKiB / processors);
  own["reserved"] = fmt::format("{}KiB", totalKiB / processors / 16);
  document["provenance"]["imported"] =
      "/proc of this host: a rank for each processor, memory in equal parts; "
      "rates are those of cpu:N, set and not measured";
  return document;
}

} // namespace monarch::planner
