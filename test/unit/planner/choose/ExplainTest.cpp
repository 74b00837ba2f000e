//===- ExplainTest.cpp - why this, why not that, what if ------------------===//
#include "planner/choose/Explain.h"
#include "test/unit/planner/choose/Models.h"

#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::planner;

namespace {

struct Question {
  Target target = *findTarget("megatron");
  ModelWork work = llama8b(target);
  Machine machine = boxes("H100-SXM5-80GB", 16);
  LayoutRequest request;
  Question() { request.globalBatch = 64; }
};

} // namespace

TEST_CASE("Why not: longer by which parts, violated by what, too large by how "
          "much") {
  Question q;
  auto choice = chooseLayout(q.work, q.machine, q.target, q.request);
  REQUIRE(choice);
  auto ask = [&](const char *pins) {
    return whyNot(q.work, q.machine, q.target, q.request, *choice,
                  *readLayoutPins(pins));
  };
  WhyNot slower = ask("tp=8,pp=2");
  REQUIRE(slower.best);
  CHECK(slower.best->time.seconds > choice->best.time.seconds);
  CHECK(slower.reason.find("collectives inside layers +") != std::string::npos);
  WhyNot illegal = ask("tp=3");
  CHECK_FALSE(illegal.best);
  CHECK(illegal.reason.find("heads over tp 3: legal are 1, 2, 4, 8, 16") !=
        std::string::npos);
  WhyNot large = ask("zero=0,dp=16,recompute=none");
  CHECK_FALSE(large.best);
  CHECK(large.reason.find("GiB of") != std::string::npos);
}

TEST_CASE("Why this: no neighbour of a decision is faster") {
  Question q;
  auto choice = chooseLayout(q.work, q.machine, q.target, q.request);
  REQUIRE(choice);
  auto answers = whyThis(q.work, q.machine, q.target, q.request, *choice);
  CHECK(answers.size() >= 6);
  for (const WhyNot &answer : answers) {
    INFO(answer.pins << ": " << answer.reason);
    CHECK_FALSE(answer.reason.empty());
    if (answer.best)
      CHECK(answer.best->time.seconds >= choice->best.time.seconds);
  }
}

TEST_CASE("A fifth more or less of each figure") {
  Question q;
  auto choice = chooseLayout(q.work, q.machine, q.target, q.request);
  REQUIRE(choice);
  auto list = sensitivity(q.work, q.machine, q.target, q.request, *choice);
  REQUIRE(list.size() == 10);
  for (const Sensitivity &entry : list) {
    INFO(entry.what << " x " << entry.factor);
    const double now = choice->best.time.seconds;
    if (entry.factor > 1)
      CHECK(entry.seconds <= now);
    else
      CHECK(entry.seconds >= now);
    // What is best there is at least as good as what was best here.
    REQUIRE(entry.best);
    if (entry.fits)
      CHECK(entry.best->time.seconds <= entry.seconds * (1 + 1e-9));
  }
}
