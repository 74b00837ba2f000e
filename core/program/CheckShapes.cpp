//===- CheckShapes.cpp - results of calls have the declared shape ---------===//
//
// A table of the common ops: what the shape and type of the result follow from
// the operands, at one rank of each class. Ops that it does not have are left
// to the runtime, which compares every result with its declaration.
//
//===----------------------------------------------------------------------===//
#include "core/program/Checks.h"

#include <algorithm>
#include <fmt/format.h>
#include <unordered_map>

namespace monarch {

namespace {

using Shape = std::vector<int64_t>;

struct CallTypes {
  std::vector<TensorType> operands, results;
};

/// "" when the results follow from the operands.
using ShapeRule = std::string (*)(const CallTypes &);

std::string textOf(const Shape &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

int64_t elements(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count = multiplySizes(count, size);
  return count;
}

std::string expectShape(const CallTypes &call, const Shape &shape) {
  if (call.results[0].shape == shape)
    return "";
  return fmt::format("gives {}, {} is declared", textOf(shape),
                     textOf(call.results[0].shape));
}

std::string expectTypes(const CallTypes &call) {
  for (const auto *list : {&call.operands, &call.results})
    for (const TensorType &tensor : *list)
      if (tensor.type != call.operands[0].type)
        return fmt::format("mixes {} and {}", toString(call.operands[0].type),
                           toString(tensor.type));
  return "";
}

std::string firstOf(std::string a, std::string b) { return a.empty() ? b : a; }

/// All of the first operand's shape and type.
std::string same(const CallTypes &call) {
  for (const TensorType &operand : call.operands)
    if (operand.shape != call.operands[0].shape)
      return fmt::format("operands {} and {} differ",
                         textOf(call.operands[0].shape), textOf(operand.shape));
  return firstOf(expectShape(call, call.operands[0].shape), expectTypes(call));
}

/// Operands broadcast to the result; types may be promoted.
std::string broadcast(const CallTypes &call) {
  Shape shape;
  for (const TensorType &operand : call.operands) {
    Shape longer = operand.shape, shorter = shape;
    if (longer.size() < shorter.size())
      std::swap(longer, shorter);
    size_t offset = longer.size() - shorter.size();
    for (size_t i = 0; i < shorter.size(); ++i) {
      int64_t &size = longer[offset + i];
      if (size != shorter[i] && size != 1 && shorter[i] != 1)
        return fmt::format("operand {} does not broadcast",
                           textOf(operand.shape));
      size = size == 1 ? shorter[i] : size;
    }
    shape = longer;
  }
  return expectShape(call, shape);
}

std::string product(const Shape &a, const Shape &b, const CallTypes &call) {
  size_t rank = a.size();
  bool fits = rank >= 2 && b.size() == rank && a[rank - 1] == b[rank - 2] &&
              std::equal(a.begin(), a.end() - 2, b.begin());
  if (!fits)
    return fmt::format("{} does not multiply {}", textOf(a), textOf(b));
  Shape shape = a;
  shape[rank - 1] = b[rank - 1];
  return firstOf(expectShape(call, shape), expectTypes(call));
}

std::string matrixProduct(const CallTypes &call) {
  if (call.operands.size() != 2)
    return "two operands are expected";
  return product(call.operands[0].shape, call.operands[1].shape, call);
}

std::string addedProduct(const CallTypes &call) {
  if (call.operands.size() != 3)
    return "three operands are expected";
  return product(call.operands[1].shape, call.operands[2].shape, call);
}

std::string regrouped(const CallTypes &call) {
  int64_t has = elements(call.operands[0].shape);
  int64_t declared = elements(call.results[0].shape);
  if (has != declared)
    return fmt::format("{} elements are viewed as {}", has, declared);
  return expectTypes(call);
}

std::string transposed(const CallTypes &call) {
  Shape shape = call.operands[0].shape;
  std::reverse(shape.begin(), shape.end());
  return firstOf(expectShape(call, shape), expectTypes(call));
}

std::string permuted(const CallTypes &call) {
  Shape from = call.operands[0].shape, to = call.results[0].shape;
  std::sort(from.begin(), from.end());
  std::sort(to.begin(), to.end());
  if (from != to)
    return fmt::format("{} is no permutation of {}",
                       textOf(call.results[0].shape),
                       textOf(call.operands[0].shape));
  return expectTypes(call);
}

std::string expanded(const CallTypes &call) {
  const Shape &from = call.operands[0].shape, &to = call.results[0].shape;
  bool fits = from.size() <= to.size();
  for (size_t i = 0; fits && i < from.size(); ++i) {
    int64_t size = to[to.size() - from.size() + i];
    fits = from[i] == size || from[i] == 1;
  }
  if (!fits)
    return fmt::format("{} does not expand to {}", textOf(from), textOf(to));
  return expectTypes(call);
}

/// Parts of a whole: equal but for one dim, whose sizes add up.
std::string parts(const TensorType &whole,
                  const std::vector<TensorType> &pieces) {
  Shape total;
  for (const TensorType &piece : pieces) {
    if (piece.type != whole.type || piece.shape.size() != whole.shape.size())
      return "pieces differ from the whole in type or rank";
    if (total.empty())
      total.assign(piece.shape.size(), 0);
    for (size_t dim = 0; dim < total.size(); ++dim)
      total[dim] = addSizes(total[dim], piece.shape[dim]);
  }
  int64_t count = 0;
  for (const TensorType &piece : pieces)
    count = addSizes(count, elements(piece.shape));
  bool anyDim = false;
  for (size_t dim = 0; dim < total.size(); ++dim)
    anyDim = anyDim || total[dim] == whole.shape[dim];
  if (anyDim && count == elements(whole.shape))
    return "";
  return fmt::format("pieces do not add up to {}", textOf(whole.shape));
}

std::string concatenated(const CallTypes &call) {
  return parts(call.results[0], call.operands);
}

std::string splitUp(const CallTypes &call) {
  return parts(call.operands[0], call.results);
}

std::string selected(const CallTypes &call) {
  if (call.operands.size() != 2)
    return "two operands are expected";
  const Shape &from = call.operands[0].shape, &to = call.results[0].shape;
  int64_t count = elements(call.operands[1].shape);
  size_t differing = 0;
  bool fits = from.size() == to.size();
  for (size_t dim = 0; fits && dim < from.size(); ++dim)
    if (from[dim] != to[dim]) {
      ++differing;
      fits = to[dim] == count;
    }
  if (!fits || differing > 1 || call.operands[0].type != call.results[0].type)
    return fmt::format("{} of {} does not give {}", count, textOf(from),
                       textOf(to));
  return "";
}

std::string embedded(const CallTypes &call) {
  if (call.operands.size() != 2 || call.operands[0].shape.size() != 2)
    return "a table and indices are expected";
  Shape shape = call.operands[1].shape;
  shape.push_back(call.operands[0].shape[1]);
  return expectShape(call, shape);
}

const std::unordered_map<std::string_view, ShapeRule> &shapeRules() {
  static const auto *rules = [] {
    auto *table = new std::unordered_map<std::string_view, ShapeRule>;
    for (const char *name :
         {"aten::relu", "aten::gelu", "aten::silu", "aten::tanh",
          "aten::sigmoid", "aten::neg", "aten::exp", "aten::rsqrt",
          "aten::reciprocal", "aten::clone", "aten::gelu_backward",
          "aten::silu_backward", "aten::tanh_backward",
          "aten::threshold_backward"})
      (*table)[name] = same;
    for (const char *name : {"aten::add.Tensor", "aten::sub.Tensor",
                             "aten::mul.Tensor", "aten::div.Tensor"})
      (*table)[name] = broadcast;
    for (const char *name :
         {"aten::view", "aten::_unsafe_view", "aten::reshape",
          "aten::unsqueeze", "aten::squeeze", "aten::squeeze.dim",
          "aten::squeeze.dims", "aten::alias", "aten::detach"})
      (*table)[name] = regrouped;
    (*table)["aten::mm"] = matrixProduct;
    (*table)["aten::bmm"] = matrixProduct;
    (*table)["aten::addmm"] = addedProduct;
    (*table)["aten::baddbmm"] = addedProduct;
    (*table)["aten::t"] = transposed;
    (*table)["aten::transpose.int"] = permuted;
    (*table)["aten::permute"] = permuted;
    (*table)["aten::expand"] = expanded;
    (*table)["aten::cat"] = concatenated;
    (*table)["aten::split_with_sizes"] = splitUp;
    (*table)["aten::index_select"] = selected;
    (*table)["aten::embedding"] = embedded;
    return table;
  }();
  return *rules;
}

ShapeRule ruleFor(const Instruction &instruction) {
  if (instruction.kind == InstructionKind::Zero)
    return same;
  if (instruction.kind != InstructionKind::Call)
    return nullptr;
  auto found = shapeRules().find(instruction.name);
  return found == shapeRules().end() ? nullptr : found->second;
}

} // namespace

void checkShapes(const StageSizes &sizes, Findings &findings) {
  const Role &role = sizes.role();
  for (const Segment &segment : role.segments)
    for (size_t i = 0; i < segment.instructions.size(); ++i) {
      const Instruction &instruction = segment.instructions[i];
      ShapeRule rule = ruleFor(instruction);
      if (!rule)
        continue;
      for (int64_t rank : sizes.classes()) {
        CallTypes call{sizes.tensors(instruction.operands, rank),
                       sizes.tensors(instruction.results, rank)};
        std::string problem = call.operands.empty() || call.results.empty()
                                  ? "operands or results are missing"
                                  : rule(call);
        if (problem.empty())
          continue;
        findings.add("MP2150", fmt::format("rank {}: {}", rank, problem),
                     placeOf(role, segment, i));
        break;
      }
    }
}

} // namespace monarch
