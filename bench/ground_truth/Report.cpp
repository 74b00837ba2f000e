//===- Report.cpp - bands and choices on published measurements -----------===//
#include "bench/ground_truth/Report.h"

#include "bench/ground_truth/Fit.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <set>

namespace monarch::bench {

using namespace planner;

namespace {

BandFacts factsOf(const Predictor &predictor, size_t index,
                  const Predictor::Prediction &prediction) {
  const Row &row = predictor.rows[index];
  return bandFacts(prediction.time, row.layouts[0], predictor.workOf(index),
                   row.machine, prediction.isOpen);
}

/// Ranks from 1, equal values sharing the mean of theirs.
std::vector<double> ranksOf(const std::vector<double> &values) {
  std::vector<size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]])
      ++end;
    double rank = static_cast<double>(begin + end + 1) / 2;
    for (; begin < end; ++begin)
      ranks[order[begin]] = rank;
  }
  return ranks;
}

double spearman(const std::vector<double> &a, const std::vector<double> &b) {
  std::vector<double> x = ranksOf(a), y = ranksOf(b);
  const double n = static_cast<double>(x.size()), mean = (n + 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx * yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// Times closer than this, as a share, are not told apart by the source.
double tieOf(const std::string &source) {
  if (source.starts_with("BLOOM"))
    return 0.005;
  return source.starts_with("vTrain") ? 0.06 : 0.02;
}

std::string setOf(const Row &row) {
  const ModelShape &model = row.model;
  std::string notes = row.json.value("notes", "");
  std::string name = row.source->key;
  // The two tables of one paper compare runs of one model.
  if (name == "SC'21 T2 ZeRO-3")
    name = "SC'21 T2";
  const bool isAfter = notes.find("after PCIe/NUMA fix") != std::string::npos;
  return fmt::format("{} L{} h{} a{} s{} n{} batch {} {} {}{}", name,
                     model.layers, model.hidden, model.heads, model.sequence,
                     row.machine.devices, row.layouts[0].globalBatch,
                     row.machine.device.name, row.json.at("precision").dump(),
                     isAfter ? " after fix" : "");
}

} // namespace

void reportBand(const Predictor &predictor, const Constants &constants,
                const BandTerms &terms) {
  struct Tally {
    double inside = 0, count = 0, width = 0;
  };
  std::map<std::string, Tally> tallies;
  std::map<std::pair<std::string, std::string>, int> outside;
  for (size_t index = 0; index < predictor.rows.size(); ++index) {
    const Row &row = predictor.rows[index];
    if (row.isSuspect || row.seconds == 0)
      continue;
    auto prediction = predictor.predict(index, constants);
    double half = bandHalfWidth(factsOf(predictor, index, prediction), terms);
    double off = std::abs(row.seconds / prediction.seconds - 1);
    Tally &tally = tallies[row.split];
    tally.inside += off <= half;
    if (off > half)
      ++outside[{row.split, row.source->key}];
    tally.width += half;
    ++tally.count;
  }
  fmt::print("\n90 % band: base {:.3f}, unsteady {:.3f}, host {:.3f}\n",
             terms.base, terms.unsteady, terms.host);
  for (const auto &[split, tally] : tallies)
    fmt::print("{:<34} n {:>4} inside {:>5.1f} % mean half-width {:>5.1f} %\n",
               split, tally.count, 100 * tally.inside / tally.count,
               100 * tally.width / tally.count);
  std::string list;
  for (const auto &[key, count] : outside)
    if (key.first == "validate")
      list +=
          fmt::format("{}{} {}", list.empty() ? "" : ", ", key.second, count);
  fmt::print("outside: {}\n", list);
}

void reportChoices(const Predictor &predictor, const Constants &constants) {
  std::map<std::string, std::vector<size_t>> sets;
  for (size_t index = 0; index < predictor.rows.size(); ++index) {
    const Row &row = predictor.rows[index];
    if (!row.isSuspect && row.seconds > 0)
      sets[setOf(row)].push_back(index);
  }
  fmt::print("\n{:<66} {:>3} {:>8} {:>8}\n", "choice within sets", "n",
             "regret %", "rank");
  double regrets = 0, count = 0;
  std::vector<double> single;
  for (const auto &[name, rows] : sets) {
    if (rows.size() < 2)
      continue;
    // Repeats of one layout count once, by their geometric mean.
    std::map<double, std::vector<double>> layouts;
    for (size_t index : rows)
      layouts[predictor.predict(index, constants).seconds].push_back(
          std::log(predictor.rows[index].seconds));
    std::vector<double> predicted, measured;
    for (const auto &[seconds, logs] : layouts) {
      predicted.push_back(seconds);
      measured.push_back(
          std::exp(std::accumulate(logs.begin(), logs.end(), 0.0) /
                   static_cast<double>(logs.size())));
    }
    if (predicted.size() < 2)
      continue;
    const size_t choice = static_cast<size_t>(
        std::min_element(predicted.begin(), predicted.end()) -
        predicted.begin());
    const double best = *std::min_element(measured.begin(), measured.end());
    double regret = measured[choice] / best - 1;
    const std::string &source = predictor.rows[rows[0]].source->key;
    if (regret <= tieOf(source))
      regret = 0;
    if (source == "vTrain single") {
      single.push_back(regret);
      continue;
    }
    if (predicted.size() < 3 && source != "CI 7B" && source != "SC'21 T2")
      continue;
    regrets += regret;
    ++count;
    fmt::print(
        "{:<66} {:>3} {:>8.1f} {:>8}\n", name, predicted.size(), 100 * regret,
        rows.size() > 2 ? fmt::format("{:.2f}", spearman(predicted, measured))
                        : "-");
  }
  if (!single.empty())
    fmt::print("vTrain single-node sets: {}, mean regret {:.1f} %\n",
               single.size(),
               100 * std::accumulate(single.begin(), single.end(), 0.0) /
                   static_cast<double>(single.size()));
  if (count > 0)
    fmt::print("mean regret over {} sets: {:.1f} %\n", count,
               100 * regrets / count);
}

BandTerms estimateBand(const std::vector<Row> &rows, const Constants &start) {
  std::vector<Row> calibrate;
  std::set<std::string> keys;
  // The host's part is in vTrain's single-node rows alone: they are left out
  // by width, so that some of them remain.
  auto keyOf = [](const Row &row) {
    std::string key = row.source->key;
    return key == "vTrain single" ? fmt::format("{} h{}", key, row.model.hidden)
                                  : key;
  };
  for (const Row &row : rows)
    if (row.split == "calibrate" && !row.isSuspect && row.source->weight > 0) {
      calibrate.push_back(row);
      keys.insert(keyOf(row));
    }
  struct Sample {
    BandFacts facts;
    double off;
  };
  std::vector<Sample> samples;
  for (const std::string &key : keys) {
    std::vector<Row> others, own;
    for (const Row &row : calibrate)
      (keyOf(row) == key ? own : others).push_back(row);
    Constants constants = fit(Predictor(others), start);
    Predictor predictor(own);
    std::vector<double> residuals;
    for (size_t index = 0; index < own.size(); ++index) {
      if (own[index].seconds == 0)
        continue;
      auto prediction = predictor.predict(index, constants);
      residuals.push_back(std::log(prediction.seconds / own[index].seconds));
      samples.push_back(
          {factsOf(predictor, index, prediction),
           std::abs(own[index].seconds / prediction.seconds - 1)});
    }
    Errors errors = errorsOf(residuals);
    fmt::print("without {:<26} n {:>4} mean {:>5.1f} median {:>5.1f} max "
               "{:>5.1f} bias {:>+5.1f}\n",
               key, errors.count, errors.mean, errors.median, errors.max,
               errors.bias);
  }
  // The narrowest terms on a grid, by likelihood, whose band holds nine tenths.
  BandTerms best = builtInBand();
  double bestScore = 1e300;
  for (double base = 0.02; base <= 0.1; base += 0.005)
    for (double unsteady = 0; unsteady <= 0.6; unsteady += 0.05)
      for (double host = 0; host <= 0.5; host += 0.02) {
        BandTerms terms = builtInBand();
        terms.base = base;
        terms.unsteady = unsteady;
        terms.host = host;
        double inside = 0, width = 0;
        for (const Sample &sample : samples) {
          double half = bandHalfWidth(sample.facts, terms);
          inside += sample.off <= half;
          width += half;
        }
        const double n = static_cast<double>(samples.size());
        if (inside / n >= 0.9 && width / n < bestScore) {
          bestScore = width / n;
          best = terms;
        }
      }
  return best;
}

} // namespace monarch::bench
