//===- Report.cpp - what a run did ----------------------------------------===//
//
// See Report.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/launch/Report.h"

#include "core/support/Json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace monarch::runtime {

namespace {

constexpr const char *kinds[] = {"all_reduce", "all_gather", "reduce_scatter",
                                 "all_to_all", "send"};

/// Every kind, also those that did not occur.
Json writeCounts(const std::map<std::string, int64_t> &counts) {
  Json json = Json::object();
  for (const char *kind : kinds) {
    auto found = counts.find(kind);
    json[kind] = found == counts.end() ? 0 : found->second;
  }
  return json;
}

std::map<std::string, int64_t> readCounts(const JsonValue &json) {
  std::map<std::string, int64_t> counts;
  for (const auto &[kind, count] : json.fields())
    if (int64_t value = count.integer())
      counts[kind] = value;
  return counts;
}

Json writeSeconds(const std::vector<double> &seconds) {
  Json json = Json::array();
  for (double value : seconds)
    json.push_back(rounded(value));
  return json;
}

Json writeRank(const RankReport &report) {
  Json json = Json::object();
  json["rank"] = report.rank;
  json["stage"] = report.stage;
  json["coordinates"] = report.coordinates;
  json["bytes"] = writeCounts(report.traffic.bytes);
  json["collectives"] = writeCounts(report.traffic.collectives);
  json["peak_tensor_bytes"] = report.peakTensorBytes;
  json["step_seconds"] = writeSeconds(report.stepSeconds);
  Json segments = Json::object();
  for (const auto &[name, seconds] : report.segmentSeconds)
    segments[name] = rounded(seconds);
  json["segment_seconds"] = segments;
  return json;
}

int64_t sumOf(const std::map<std::string, int64_t> &counts) {
  int64_t sum = 0;
  for (const auto &[kind, count] : counts)
    sum += count;
  return sum;
}

} // namespace

std::string writeRankReport(const RankReport &report) {
  return writeJson(writeRank(report));
}

Expected<RankReport> readRankReport(const std::string &text) {
  const std::string where = "a rank's report";
  auto json = parseJson(text, where);
  if (!json)
    return json.error();
  JsonDocument document{*json, where};
  JsonValue value(document);
  RankReport report;
  report.rank = value["rank"].integer();
  report.stage = static_cast<int>(value["stage"].integer());
  report.coordinates = value["coordinates"].integers();
  report.traffic.bytes = readCounts(value["bytes"]);
  report.traffic.collectives = readCounts(value["collectives"]);
  report.peakTensorBytes = value["peak_tensor_bytes"].integer();
  for (const JsonValue &seconds : value["step_seconds"].elements())
    report.stepSeconds.push_back(seconds.number());
  for (const auto &[name, seconds] : value["segment_seconds"].fields())
    report.segmentSeconds[name] = seconds.number();
  if (document.error)
    return *document.error;
  return report;
}

std::string writeReport(const RunReport &report, const Program &program) {
  Json json = Json::object();
  json["schema"] = "monarch.report/1";
  Json losses = Json::array();
  for (double loss : report.losses)
    losses.push_back(jsonOfReal(loss));
  json["losses"] = losses;
  Json ranks = Json::array();
  for (const RankReport &rank : report.ranks)
    ranks.push_back(writeRank(rank));
  json["ranks"] = ranks;
  Json predicted = Json::object();
  predicted["bytes"] = writeCounts(program.predicted.bytes);
  predicted["collectives"] = writeCounts(program.predicted.collectives);
  predicted["peak_tensor_bytes"] = program.predictedPeakBytes;
  json["predicted"] = predicted;
  if (report.verify) {
    Json verify = Json::object();
    verify["loss"] = jsonOfReal(report.verify->loss);
    verify["gradients"] = jsonOfReal(report.verify->gradients);
    verify["buffers"] = jsonOfReal(report.verify->buffers);
    verify["weights"] = jsonOfReal(report.verify->weights);
    json["verify"] = verify;
  }
  return writeJson(json);
}

std::optional<Error> checkTraffic(const std::vector<RankReport> &ranks,
                                  const Program &program) {
  Traffic executed;
  for (const RankReport &rank : ranks) {
    for (const auto &[kind, bytes] : rank.traffic.bytes)
      executed.bytes[kind] += bytes;
    for (const auto &[kind, count] : rank.traffic.collectives)
      executed.collectives[kind] += count;
  }
  if (writeCounts(executed.bytes) == writeCounts(program.predicted.bytes) &&
      writeCounts(executed.collectives) ==
          writeCounts(program.predicted.collectives))
    return std::nullopt;
  return Error{"MP4008", ExitCode::RunFailed,
               fmt::format("executed {} in {}, predicted {} in {}",
                           writeCounts(executed.bytes).dump(),
                           writeCounts(executed.collectives).dump(),
                           writeCounts(program.predicted.bytes).dump(),
                           writeCounts(program.predicted.collectives).dump()),
               "traffic of one step, bytes in calls", ""};
}

std::string summaryOf(const RunReport &report) {
  std::string text;
  for (const RankReport &rank : report.ranks) {
    text += fmt::format("rank {}  stage {} ({})", rank.rank, rank.stage,
                        fmt::join(rank.coordinates, ", "));
    if (!report.losses.empty())
      text += fmt::format("  loss {:.6f}", report.losses.back());
    std::vector<double> seconds = rank.stepSeconds;
    std::sort(seconds.begin(), seconds.end());
    text += fmt::format("  sent {} B in {} calls  peak {} B  {:.4f} s/step\n",
                        sumOf(rank.traffic.bytes),
                        sumOf(rank.traffic.collectives), rank.peakTensorBytes,
                        seconds.empty() ? 0 : seconds[seconds.size() / 2]);
  }
  if (report.verify)
    text += fmt::format(
        "verify  loss {:.2e}  gradients {:.2e}  buffers {:.2e}  weights {:.2e} "
        " (tolerance {:.0e}): {}\n",
        report.verify->loss, report.verify->gradients, report.verify->buffers,
        report.verify->weights, report.verify->tolerance,
        report.verify->holds() ? "equal to one process"
                               : "NOT equal, worst " + report.verify->worst);
  return text;
}

} // namespace monarch::runtime
