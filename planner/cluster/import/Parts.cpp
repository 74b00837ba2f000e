//===- Parts.cpp - what importers share -----------------------------------===//
#include "planner/cluster/import/Parts.h"

#include "planner/cluster/Cluster.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>

namespace monarch::planner {

namespace {

/// Letters and digits alone, in lower case.
std::string plain(std::string_view text) {
  std::string result;
  for (char raw : text)
    if (std::isalnum(static_cast<unsigned char>(raw)))
      result +=
          static_cast<char>(std::tolower(static_cast<unsigned char>(raw)));
  return result;
}

/// Form factors that a product names, or not.
constexpr std::string_view Forms[] = {"pcie", "nvl",  "sxm2", "sxm3",
                                      "sxm4", "sxm5", "sxm"};

} // namespace

Error importError(std::string what, std::string where, std::string fix) {
  return {"MP1105", ExitCode::BadInput, std::move(what), std::move(where),
          std::move(fix)};
}

std::string trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos)
    return "";
  return std::string(
      text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1));
}

std::vector<std::string> linesOf(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::string> wordsOf(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  for (char c : text)
    if (std::isspace(static_cast<unsigned char>(c))) {
      if (!word.empty())
        words.push_back(std::exchange(word, {}));
    } else {
      word += c;
    }
  if (!word.empty())
    words.push_back(word);
  return words;
}

std::optional<int64_t> numberOf(std::string_view text) {
  if (text.empty() || text.size() > 12 ||
      text.find_first_not_of("0123456789") != text.npos)
    return std::nullopt;
  return std::stoll(std::string(text));
}

Expected<std::string> deviceOfProduct(std::string_view product,
                                      double memoryBytes) {
  const std::string wanted = plain(product);
  const DeviceModel *best = nullptr;
  double bestScore = 0;
  for (const DeviceModel &device : deviceModels()) {
    const std::string family =
        plain(device.name.substr(0, device.name.find('-')));
    const size_t at = wanted.find(family);
    if (at == wanted.npos)
      continue;
    // "L4" is not in "L40S".
    const size_t after = at + family.size();
    const std::string own = plain(device.name);
    if (after < wanted.size() &&
        std::isdigit(static_cast<unsigned char>(wanted[after])) &&
        family.size() <= 2)
      continue;
    double score = 100.0 * static_cast<double>(family.size());
    bool saysForm = false;
    for (std::string_view form : Forms)
      if (wanted.find(form) != wanted.npos) {
        saysForm = true;
        score += own.find(form.substr(0, 3)) != own.npos ? 10 : -10;
        break;
      }
    if (!saysForm && own.find("sxm") != own.npos)
      score += 5;
    // The driver keeps a little of the memory.
    score -= 20 * std::abs(memoryBytes / device.memoryBytes - 1);
    if (!best || score > bestScore) {
      best = &device;
      bestScore = score;
    }
  }
  if (best)
    return best->name;
  return importError(fmt::format("no known device is \"{}\"", product), "",
                     "give --device NAME, as monarch-plan cluster list names "
                     "them, or describe it in a monarch.cluster/1 file");
}

Json documentOf(const std::string &device, int64_t perNode,
                const std::string &source) {
  Json document;
  document["schema"] = "monarch.cluster/1";
  document["extends"] = fmt::format("{}x{}", perNode, device);
  document["provenance"]["imported"] = source;
  return document;
}

void addLinks(const DeviceModel &device, int64_t perNode,
              const NodeLinks &links, Json &document) {
  if (perNode < 2)
    return;
  // One direction of one link: NVLink 2 to 4, and 5 (data sheets).
  constexpr double Link = 25e9, Link5 = 50e9;
  const std::string level = device.hasNvlink ? "nvlink" : "pcie";
  Json entry;
  entry["name"] = level;
  if (links.nvlinks > 0 && !links.isPairwise) {
    const double one =
        device.generation >= Generation::Blackwell ? Link5 : Link;
    entry["bw"] =
        fmt::format("{:g}GB/s", static_cast<double>(links.nvlinks) * one / 1e9);
    document["provenance"]["links"] = fmt::format(
        "{} NVLinks a device of {:g} GB/s", links.nvlinks, one / 1e9);
  } else if (device.hasNvlink || links.isPairwise) {
    // A ring over all devices crosses PCIe: generation 4 before Hopper.
    const bool isFast = device.generation >= Generation::Hopper;
    entry["bw"] = isFast ? "63GB/s" : "31.5GB/s";
    document["provenance"]["links"] =
        links.isPairwise
            ? "NVLink joins pairs; a ring over the node crosses PCIe x16 "
              "(nominal)"
            : "no NVLink seen: PCIe x16 (nominal)";
  } else {
    return;
  }
  document["levels"] = Json::array({entry});
}

} // namespace monarch::planner
