//===- main.cpp - errors on published measurements ------------------------===//
//
//   ground-truth --data FILE --sources FILE [--memory FILE]
//                [--collectives FILE] [--rows] [--fit] [--band]
//
// Prints errors by split and source. --fit fits the constants to the calibrate
// rows first, --band the widths; --rows prints each row.
//
//===----------------------------------------------------------------------===//
#include "bench/ground_truth/Collectives.h"
#include "bench/ground_truth/Fit.h"
#include "bench/ground_truth/Memory.h"
#include "bench/ground_truth/Report.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <map>

using namespace monarch;
using namespace monarch::bench;

namespace {

void printErrors(const std::string &label, const Errors &errors) {
  fmt::print("{:<34} {:>4} {:>7.1f} {:>7.1f} {:>7.1f} {:>7.1f} {:>+7.1f}\n",
             label, errors.count, errors.mean, errors.median, errors.p90,
             errors.max, errors.bias);
}

void printHeader() {
  fmt::print("{:<34} {:>4} {:>7} {:>7} {:>7} {:>7} {:>7}\n", "source", "n",
             "mean %", "median", "p90", "max", "bias");
}

} // namespace

int main(int argc, char **argv) {
  CLI::App app("Errors of the step model on published measurements");
  std::string data, sourcesPath, memoryPath, collectivesPath;
  bool printsRows = false, fits = false, estimates = false;
  std::string only;
  app.add_option("--data", data)->required();
  app.add_option("--sources", sourcesPath)->required();
  app.add_option("--memory", memoryPath);
  app.add_option("--collectives", collectivesPath);
  app.add_flag("--rows", printsRows);
  app.add_option("--only", only);
  app.add_flag("--fit", fits);
  app.add_flag("--band", estimates);
  CLI11_PARSE(app, argc, argv);
  auto sources = readSources(sourcesPath);
  if (!sources) {
    fmt::print(stderr, "{}\n", toString(sources.error()));
    return 3;
  }
  auto reading = readRows(data, *sources);
  if (!reading) {
    fmt::print(stderr, "{}\n", toString(reading.error()));
    return 3;
  }
  planner::Constants constants = planner::builtInConstants();
  if (fits) {
    std::vector<Row> rows;
    for (const Row &row : reading->rows)
      if (row.split == "calibrate" && !row.isSuspect && row.source->weight > 0)
        rows.push_back(row);
    constants = fit(Predictor(rows), constants);
    for (const planner::ConstantRange &range : planner::fittedConstants())
      fmt::print("{} = {:.6g}\n", range.field.name,
                 constants.*range.field.member);
  }
  Predictor predictor(reading->rows);
  std::map<std::pair<std::string, std::string>, std::vector<double>> groups;
  std::map<std::string, std::vector<double>> splits;
  for (const Predictor::Residual &residual : predictor.residuals(constants)) {
    const Row &row = reading->rows[residual.row];
    if (printsRows && (only.empty() || row.source->key == only)) {
      auto p = predictor.predict(residual.row, constants);
      const auto &t = p.time;
      fmt::print("{:<44} {:>9.4f} {:>9.4f} {:>+6.1f}%{}{} fw {:.2f}+{:.2f} bw "
                 "{:.2f}+{:.2f} ms stage {:.3f} bub {:.3f} data {:.3f} opt "
                 "{:.3f} host {:.2f}\n",
                 row.id, p.seconds, row.seconds,
                 100 * (std::exp(residual.value) - 1),
                 row.isSuspect ? " suspect" : "", p.isOpen ? " open" : "",
                 1e3 * t.layer.forward, 1e3 * t.layer.forwardExchange,
                 1e3 * t.layer.backward, 1e3 * t.layer.backwardExchange,
                 t.stage, t.bubble, t.data, t.optimizer, t.hostShare);
    }
    if (row.isSuspect)
      continue;
    groups[{row.split, row.source->key}].push_back(residual.value);
    splits[row.split].push_back(residual.value);
  }
  printHeader();
  for (const auto &[key, residuals] : groups)
    printErrors(key.first + " " + key.second, errorsOf(residuals));
  // Sources that belong together.
  const std::vector<std::pair<std::string, std::vector<std::string>>> joined = {
      {"vTrain, both splits", {"vTrain multi", "vTrain single"}},
      {"NVIDIA dense",
       {"Bridge dense", "NeMo 24.07", "NeMo 24.03", "Megatron-Core r0.8"}},
      {"NVIDIA experts", {"Bridge MoE"}},
      {"torchtitan, all",
       {"torchtitan", "torchtitan 2025", "torchtitan eager"}}};
  for (const auto &[label, keys] : joined) {
    std::vector<double> together;
    for (const auto &[key, residuals] : groups)
      if (std::find(keys.begin(), keys.end(), key.second) != keys.end())
        together.insert(together.end(), residuals.begin(), residuals.end());
    if (!together.empty())
      printErrors(label, errorsOf(together));
  }
  for (const auto &[split, residuals] : splits)
    printErrors("all " + split, errorsOf(residuals));
  reportBand(predictor, constants,
             estimates ? estimateBand(reading->rows, constants)
                       : planner::builtInBand());
  reportChoices(predictor, constants);
  if (!memoryPath.empty())
    if (auto error = reportMemory(memoryPath, *sources, printsRows)) {
      fmt::print(stderr, "{}\n", toString(*error));
      return 3;
    }
  if (!collectivesPath.empty())
    if (auto error = reportCollectives(collectivesPath)) {
      fmt::print(stderr, "{}\n", toString(*error));
      return 3;
    }
  fmt::print("rows of steps left out: {}\n", reading->leftOut.size());
  return 0;
}
