//===- OpsDoc.cpp - docs/ops.md, from the registry ------------------------===//
//
//   ops-doc -o docs/ops.md
//   ops-doc --check docs/ops.md
//
// One row an op, read off its first sample: the labels of its dims, which of
// them may be split and what that leaves, and which operands may be partial.
//
//===----------------------------------------------------------------------===//
#include "core/strategy/Strategies.h"
#include "core/support/Files.h"
#include "runtime/ops/Ops.h"
#include "test/strategies/Samples.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <set>

using namespace monarch;
using namespace monarch::test;

namespace {

constexpr std::string_view Head = R"(# Ops

Written by `ops-doc` (`test/strategies/OpsDoc.cpp`) from the registry, a test keeps it current. Every strategy of every op here is
tested: split, run on ranks, put together, compared with the unsplit op in float64 (`test/strategies`). An op that is not here
works: it is computed whole by every rank, and `random_plans` lists it. How to add one: [howto/add-op.md](howto/add-op.md).

Dims are labelled as in an einsum, on the op's first sample; `.` is a dim of no label, which is not split. `split` are the labels along
which the op may be cut; after an arrow what a cut leaves partial (sums over the ranks), in operands `in` and results `out`.
`partial` are operands that may be partial sums together, the op being linear in them. `body`: some splits take more than the op on local
tensors (collectives, index lists). A view, transpose or cast follows its neighbour and has no decision of its own.

| op | dims | split | partial | |
|---|---|---|---|---|
)";

std::string dimsOf(const std::vector<DimLabel> &labels) {
  std::string text;
  for (const DimLabel &label : labels) {
    text += text.empty() ? "" : " ";
    text += label.name.empty() ? "." : label.name;
    if (label.end != -1)
      text += fmt::format("[{}:{}]", label.begin, label.end);
  }
  return "(" + text + ")";
}

std::string dimsOf(const OpRule &rule, const Op &op) {
  if (rule.isView)
    return "regrouped";
  std::vector<std::string> operands, results;
  for (const auto &labels : rule.operands)
    operands.push_back(dimsOf(labels));
  for (size_t k = 0; k < rule.results.size(); ++k)
    results.push_back(op.results[k] == None ? "-" : dimsOf(rule.results[k]));
  return fmt::format("{} → {}", fmt::join(operands, " "),
                     fmt::join(results, " "));
}

std::string partialsOf(const std::vector<AxisStateKind> &states) {
  std::vector<std::string> places;
  for (size_t k = 0; k < states.size(); ++k)
    if (states[k] == AxisStateKind::Partial)
      places.push_back(std::to_string(k));
  return fmt::format("{}", fmt::join(places, ","));
}

std::string effectOf(const LabelEffect &effect) {
  std::string in = partialsOf(effect.operands);
  std::string out = partialsOf(effect.results);
  if (in.empty() && out.empty())
    return "";
  return " →" + (in.empty() ? "" : " in " + in) +
         (out.empty() ? "" : " out " + out);
}

std::string splitsOf(const OpRule &rule) {
  if (rule.isView)
    return "factors that both sides have";
  std::set<std::string> names;
  for (const auto *side : {&rule.operands, &rule.results})
    for (const auto &labels : *side)
      for (const DimLabel &label : labels)
        if (!label.name.empty())
          names.insert(label.name);
  std::vector<std::string> texts;
  for (const std::string &name : names) {
    auto effect = rule.effects.find(name);
    if (effect == rule.effects.end())
      texts.push_back(name);
    else if (!effect->second.whole)
      texts.push_back(name + effectOf(effect->second));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

std::string linearOf(const OpRule &rule) {
  std::vector<std::string> groups;
  for (const LinearGroup &group : rule.linear)
    groups.push_back(fmt::format("{}", fmt::join(group.operands, "+")));
  return fmt::format("{}", fmt::join(groups, "; "));
}

std::string rowOf(const std::string &name, const Sample &sample) {
  const Op &op = sample.graph.op(sample.op);
  const auto rule = ruleOf(sample.graph, op);
  std::string kind = rule->follows ? "follows" : rule->lower ? "body" : "";
  return fmt::format("| `{}` | {} | {} | {} | {} |\n", name, dimsOf(*rule, op),
                     splitsOf(*rule), linearOf(*rule), kind);
}

std::string document() {
  registerOps();
  std::string text(Head);
  for (const auto &[name, make] : sampleTable())
    text += rowOf(name, make(/*seed=*/1).front());
  return text;
}

} // namespace

int main(int argc, char **argv) {
  const std::string mode = argc == 3 ? argv[1] : "";
  if (mode != "-o" && mode != "--check") {
    std::fprintf(stderr, "usage: ops-doc -o FILE | --check FILE\n");
    return 2;
  }
  const std::string text = document();
  if (mode == "-o") {
    if (auto error = writeFile(argv[2], text)) {
      std::fprintf(stderr, "%s\n", toString(*error).c_str());
      return 1;
    }
    return 0;
  }
  const auto old = readFile(argv[2]);
  if (!old || *old != text) {
    std::fprintf(stderr, "%s is out of date: run ops-doc -o %s\n", argv[2],
                 argv[2]);
    return 1;
  }
  return 0;
}
