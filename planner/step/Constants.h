//===- Constants.h - the cost model's constants ---------------------------===//
//
// Each has a physical meaning and a source; both stand next to its value in
// planner/data/step/constants.json, with whether it was fitted and the range
// that the fit may use. None belongs to a model.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/support/Error.h"

#include <string_view>
#include <vector>

namespace monarch::planner {

struct Constants {
  /// Sustained rate of products over the best measured rate of the device.
  double productShare = 0;
  /// Steps along k that filling and draining a tile costs.
  double tileRamp = 0;
  /// Share of a wave that a partly filled last one loses.
  double waveLoss = 0;
  /// Sustained share of the memory's nominal rate.
  double memoryShare = 0;
  /// Seconds from one kernel to the next on the device.
  double kernelSeconds = 0;
  /// Seconds of the host for one op in eager mode.
  double launchSeconds = 0;
  /// Rate of the first flash kernel over the best product rate.
  double flashShare = 0;
  /// Bus rate of a ring over the rate of the links in a node.
  double linkShare = 0;
  /// The same across nodes.
  double nicShare = 0;
  /// Bytes/s of a ring with one rank a node, on the libraries of 2020-22.
  double flowBytesPerSecond = 0;
  /// Seconds to start a collective, for a hop inside a node, across nodes.
  double collectiveSeconds = 0;
  double hopSeconds = 0;
  double nodeHopSeconds = 0;
  /// Point to point: share of the NIC's rate, and seconds to start.
  double sendShare = 0;
  double sendSeconds = 0;
  /// Seconds of a step that belong to no op.
  double stepSeconds = 0;
  /// Slow-down of compute for each second of communication beside it.
  double overlapLoss = 0;
  /// Real traffic of pointwise kernels over what the graph counts.
  double pointwiseTraffic = 0;
  /// Real traffic of the optimizer over the count of the target.
  double optimizerTraffic = 0;
  /// Gain in clock for each share of a step that the device is idle.
  double powerHeadroom = 0;
  /// Of a node's host, for one element: gradient in, update, weight out.
  double hostUpdateSeconds = 0;
};

/// One entry of the table behind the struct.
struct ConstantField {
  std::string_view name;
  double Constants::*member;
};
const std::vector<ConstantField> &constantFields();

/// As built in: planner/data/step/constants.json.
const Constants &builtInConstants();
/// Which may be fitted, and between which values.
struct ConstantRange {
  ConstantField field;
  double low = 0, high = 0;
};
std::vector<ConstantRange> fittedConstants();

} // namespace monarch::planner
