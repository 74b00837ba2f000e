//===- Row.h - a published measurement and what it leaves open ------------===//
//
// One record of a data file, matched with the entry of sources.json that says
// which target ran it, and turned into a model, a machine and the layouts that
// it may stand for: one, or several where fields are not published.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/families/ModelShape.h"
#include "planner/step/StepTime.h"

namespace monarch::bench {

struct Source {
  std::string key;
  std::vector<std::pair<std::string, std::string>> match;
  std::string target;
  double dropout = 0;
  int64_t vocabulary = 50257;
  int64_t sequence = 1;
  /// Unknown chunks and micro-batches were chosen by trying.
  bool isTuned = false;
  bool endsOneLayerFewer = false;
  std::optional<double> nodeNicBytesPerSecond;
  std::optional<int64_t> nics;
  bool hasNewRings = false;
  double tensorDelaySeconds = 0;
  /// In the fit; 0: not fitted to.
  double weight = 0;
  /// Where a row does not say.
  std::string sharding;
  std::string leftOut;
};
Expected<std::vector<Source>> readSources(const std::string &path);

struct Row {
  std::string id;
  std::string split;
  const Source *source = nullptr;
  Json json;
  bool isSuspect = false;
  planner::ModelShape model;
  planner::Target target;
  planner::Machine machine;
  /// The first is the row as printed; more where fields are open.
  std::vector<planner::StepLayout> layouts;
  /// 0: none.
  double seconds = 0;
  /// Layer rows: forward and backward.
  double layerForward = 0, layerBackward = 0;
};

/// Why a record cannot be priced, or the row.
struct Reading {
  std::vector<Row> rows;
  std::vector<std::pair<std::string, std::string>> leftOut;
};
Expected<Reading> readRows(const std::string &path,
                           const std::vector<Source> &sources,
                           bool needsTime = true);

} // namespace monarch::bench
