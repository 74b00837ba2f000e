//===- random_plans.cpp - any legal plan gives one process's numbers ------===//
//
//   random_plans GRAPH.json PLANS [FIRST_SEED | --sample]
//
// Draws plans, resolves each, proves the program and runs it on threads in
// float64; loss, gradients and buffers must equal the one-process program's
// within 1e-12. Prints the worst error and how often each strategy was drawn; a
// strategy that the graph offers and no plan drew is a failure, but with
// --sample, as is any plan that is not equal; of such a plan the step that
// broke it is said.
//
//===----------------------------------------------------------------------===//
#include "test/plans/ModelCase.h"

#include "core/program/Verify.h"
#include "core/support/Files.h"
#include "planner/resolve/Resolve.h"
#include "test/plans/Locate.h"
#include "test/support/RandomPlan.h"

#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>

using namespace monarch;

namespace {

constexpr double Limit = 1e-12;

/// "s.1" and "j.0:2.1:2" are labels s and j; "pass0" stays.
std::string kindOf(const Choice &choice) {
  return choice.name.substr(0, choice.name.find('.'));
}

class Campaign {
public:
  Campaign(const Graph &graph) : graph(graph), space(graph) {}

  /// 0 when every plan is equal.
  int run(uint64_t firstSeed, int64_t plans, bool isSample) {
    for (int64_t i = 0; i < plans; ++i)
      runOne(firstSeed + static_cast<uint64_t>(i));
    report(plans);
    return failures == 0 && (isSample || undrawn() == 0) ? 0 : 1;
  }

private:
  const Graph &graph;
  StrategySpace space;
  std::map<int64_t, runtime::SessionResult> references; // by global rows
  std::map<std::string, std::map<std::string, int64_t>> drawn;
  test::Deviation worst;
  int64_t failures = 0;

  void fail(uint64_t seed, const planner::Decisions &plan,
            const std::string &why) {
    ++failures;
    std::printf("FAILED seed %llu: %s\n  %s\n",
                static_cast<unsigned long long>(seed),
                test::describe(plan).c_str(), why.c_str());
  }

  const runtime::SessionResult *reference(int64_t globalRows) {
    auto found = references.find(globalRows);
    if (found == references.end()) {
      auto resolved = planner::resolve(
          space, planner::oneProcess(graph, space, globalRows));
      if (!resolved) {
        std::printf("%s\n", toString(resolved.error()).c_str());
        return nullptr;
      }
      auto result = test::runCase(resolved->program);
      if (!result) {
        std::printf("%s\n", toString(result.error()).c_str());
        return nullptr;
      }
      found = references.emplace(globalRows, std::move(*result)).first;
    }
    return &found->second;
  }

  void runOne(uint64_t seed) {
    const planner::Decisions plan = test::randomPlan(space, seed);
    count(plan);
    auto resolved = planner::resolve(space, plan);
    if (!resolved)
      return fail(seed, plan, toString(resolved.error()));
    if (const std::vector<Error> errors = verify(resolved->program);
        !errors.empty())
      return fail(seed, plan, toString(errors.front()));
    const runtime::SessionResult *expected = reference(plan.globalRows);
    auto result = test::runCase(resolved->program);
    if (!result)
      return fail(seed, plan, toString(result.error()));
    if (!expected)
      return fail(seed, plan, "the one-process program does not run");
    const test::Deviation deviation = test::compare(*result, *expected);
    if (!(deviation.error <= Limit)) {
      char text[160];
      std::snprintf(text, sizeof text, "%s differs by %.3g",
                    deviation.where.c_str(), deviation.error);
      fail(seed, plan, text);
      std::printf("%s", test::locate(space, plan).c_str());
    }
    if (!(deviation.error <= worst.error))
      worst = deviation;
  }

  void count(const planner::Decisions &plan) {
    for (OpId id = 0; id < static_cast<OpId>(graph.ops.size()); ++id) {
      if (graph.ops[id].forward != None)
        continue;
      auto &ofOp = drawn[graph.ops[id].name];
      for (const Choice &choice : space.choices(id))
        ofOp[kindOf(choice)];
      for (int choice : plan.choice[id])
        if (choice != planner::Follow)
          ++ofOp[kindOf(space.choices(id)[choice])];
    }
  }

  int64_t undrawn() const {
    int64_t count = 0;
    for (const auto &[name, choices] : drawn)
      for (const auto &[choice, times] : choices)
        count += times == 0;
    return count;
  }

  void report(int64_t plans) const {
    for (const auto &[name, choices] : drawn) {
      std::printf("  %-32s", name.c_str());
      for (const auto &[choice, times] : choices)
        std::printf(" %s:%lld", choice.c_str(), static_cast<long long>(times));
      std::printf("\n");
    }
    std::string whole;
    for (const auto &[name, count] : space.opsWithoutRule())
      whole += (whole.empty() ? "" : ", ") + name + " " + std::to_string(count);
    if (!whole.empty())
      std::printf("kept whole: %s\n", whole.c_str());
    std::printf("%lld plans, %lld failed, worst error %.2g (%s), %lld "
                "strategies never drawn\n",
                static_cast<long long>(plans), static_cast<long long>(failures),
                worst.error, worst.where.c_str(),
                static_cast<long long>(undrawn()));
  }
};

} // namespace

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: random_plans GRAPH.json PLANS "
                         "[FIRST_SEED | --sample]\n");
    return 2;
  }
  auto text = readFile(argv[1]);
  if (!text) {
    std::fprintf(stderr, "%s\n", toString(text.error()).c_str());
    return 3;
  }
  auto graph = readGraph(*text);
  if (!graph) {
    std::fprintf(stderr, "%s\n", toString(graph.error()).c_str());
    return 3;
  }
  const bool isSample = argc > 3 && std::string(argv[3]) == "--sample";
  const uint64_t seed =
      argc > 3 && !isSample ? std::strtoull(argv[3], nullptr, 10) : 1;
  std::printf("%s, seeds from %llu\n", argv[1],
              static_cast<unsigned long long>(seed));
  const Graph model = test::promoted(*graph);
  // What a division of integers gives.
  at::set_default_dtype(caffe2::TypeMeta::Make<double>());
  return Campaign(model).run(seed, std::strtoll(argv[2], nullptr, 10),
                             isSample);
}
