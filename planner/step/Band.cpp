//===- Band.cpp - how sure a prediction is --------------------------------===//
#include "planner/step/Band.h"

#include <algorithm>
#include <cmath>

namespace monarch::planner {

BandFacts bandFacts(const StepTime &time, const StepLayout &layout,
                    const ModelWork &work, const Machine &machine,
                    bool isOpen) {
  BandFacts facts;
  facts.unsteadyShare = std::clamp(
      (time.bubble + time.data + time.optimizer) / time.seconds, 0.0, 1.0);
  facts.hostShare = std::clamp(time.hostShare, 0.0, 1.0);
  for (const BlockWork &block : work.kinds)
    facts.hasExperts |= block.expertParameters > 0;
  facts.isFp8 = layout.precision == Precision::Fp8;
  facts.hasContext = layout.cp > 1;
  facts.isUnmeasured = !machine.device.isMeasured;
  facts.isOpen = isOpen;
  facts.isLateGeneration = machine.device.generation >= Generation::Hopper;
  return facts;
}

double bandHalfWidth(const BandFacts &facts, const BandTerms &terms) {
  // Nine tenths of a normal distribution lie within this many deviations.
  constexpr double Deviations = 1.645;
  auto square = [](double value) { return value * value; };
  double variance = square(terms.base) +
                    square(terms.unsteady * facts.unsteadyShare) +
                    square(terms.host * facts.hostShare);
  for (auto [applies, term] :
       {std::pair(facts.hasExperts, terms.experts),
        std::pair(facts.isFp8, terms.fp8),
        std::pair(facts.hasContext, terms.context),
        std::pair(facts.isUnmeasured, terms.unmeasured),
        std::pair(facts.isOpen, terms.open),
        std::pair(facts.isLateGeneration, terms.generation)})
    if (applies)
      variance += square(term);
  return Deviations * std::sqrt(variance);
}

} // namespace monarch::planner
