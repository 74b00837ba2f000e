//===- Explain.h - why this layout, why not that one ----------------------===//
//
// Questions about a choice, each answered by asking the search again: with one
// decision changed, with a layout that the user has in mind, on a machine whose
// figures are a fifth better or worse.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "planner/choose/ChooseLayout.h"

namespace monarch::planner {

/// What an answer to "why not" comes to. Faster: pins of the request, which the
/// question overrides, are what it costs.
enum class Verdict : uint8_t { Illegal, TooLarge, Slower, Faster, Chosen };
std::string_view toString(Verdict verdict);

struct WhyNot {
  /// The pins asked about, as a user writes them.
  std::string pins;
  Verdict verdict = Verdict::Illegal;
  /// The best layout with them; none where nothing divides or fits.
  std::optional<Estimate> best;
  /// The first thing against it: what it violates, what does not fit, or which
  /// parts of its step are longer.
  std::string reason;
  /// Illegal alone: the pins with the least change to one of them that a layout
  /// has; "": no change to one is enough.
  std::string nearestLegal;
};

/// `instead` wins over the pins of the request.
WhyNot whyNot(const ModelWork &work, const Machine &machine,
              const Target &target, const LayoutRequest &request,
              const LayoutChoice &choice, const LayoutPins &instead);

/// For each decision of the planner's: the best layouts with the next smaller
/// and the next larger value.
std::vector<WhyNot> whyThis(const ModelWork &work, const Machine &machine,
                            const Target &target, const LayoutRequest &request,
                            const LayoutChoice &choice);

struct Sensitivity {
  /// "link bandwidth", "network bandwidth", "memory", "memory bandwidth",
  /// "FLOPs".
  std::string what;
  double factor = 1;
  /// The chosen layout there, and whether it still fits.
  double seconds = 0;
  bool fits = false;
  /// The best layout there; none: nothing fits.
  std::optional<Estimate> best;
};

/// Each figure times 0.8 and times 1.2.
std::vector<Sensitivity>
sensitivity(const ModelWork &work, const Machine &machine, const Target &target,
            const LayoutRequest &request, const LayoutChoice &choice);

/// What would have to give first for a shorter step.
struct Binding {
  /// "divisibility", "memory", or a figure of `sensitivity`.
  std::string what;
  std::string reason;
};
Binding firstBinding(const LayoutChoice &choice,
                     const std::vector<Sensitivity> &list);

Json toJson(const WhyNot &answer);
Json toJson(const Sensitivity &entry);
std::string summarize(const std::vector<WhyNot> &answers);
std::string summarize(const std::vector<Sensitivity> &list,
                      const LayoutChoice &choice);

} // namespace monarch::planner
