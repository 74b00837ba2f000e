//===- SelectionSamples.cpp - samples of sorting, bags and groups ---------===//

#include "test/strategies/Samples.h"

#include <ATen/ops/tensor.h>

namespace monarch::test {

namespace {

using Builder = SampleBuilder;
using Shape = Builder::Shape;
using Shapes = Builder::Shapes;
using Dims = std::vector<int64_t>;

ValueId operand(Builder &b) {
  ValueId x = b.normal({6, 5, 4});
  b.factors(x, {2, 3, 5, 4});
  return x;
}

SampleMaker pair(const std::string &name, std::vector<Arg> args, Shape shape) {
  return one([=](Builder &b) {
    b.runAll(name, {operand(b)}, args, Shapes{shape, shape});
  });
}

void addSorting(SampleTable &table) {
  table["aten::topk"] =
      pair("aten::topk", {OperandArg{0}, int64_t(2), int64_t(1), true, true},
           {6, 2, 4});
  table["aten::sort"] =
      pair("aten::sort", {OperandArg{0}, int64_t(-1), true}, {6, 5, 4});
  table["aten::sort.stable"] = pair(
      "aten::sort.stable", {OperandArg{0}, true, int64_t(0), false}, {6, 5, 4});
  table["aten::max.dim"] =
      pair("aten::max.dim", {OperandArg{0}, int64_t(1), false}, {6, 4});
  table["aten::min.dim"] =
      pair("aten::min.dim", {OperandArg{0}, int64_t(1), true}, {6, 1, 4});
  for (const char *name : {"aten::argmax", "aten::argmin"})
    table[name] =
        several({[=](Builder &b) {
                   b.run(name, {operand(b)}, {OperandArg{0}, int64_t(1), false},
                         {6, 4});
                 },
                 [=](Builder &b) {
                   b.run(name, {operand(b)}, {OperandArg{0}, int64_t(-1), true},
                         {6, 5, 1});
                 }});
  table["aten::flip"] = one([](Builder &b) {
    b.run("aten::flip", {operand(b)}, {OperandArg{0}, Dims{1}}, {6, 5, 4});
  });
  table["aten::roll"] =
      several({[](Builder &b) {
                 b.run("aten::roll", {operand(b)},
                       {OperandArg{0}, Dims{2}, Dims{1}}, {6, 5, 4});
               },
               [](Builder &b) {
                 b.run("aten::roll", {operand(b)},
                       {OperandArg{0}, Dims{-1, 3}, Dims{0, -1}}, {6, 5, 4});
               }});
  table["aten::histc"] = one([](Builder &b) {
    b.run("aten::histc", {operand(b)},
          {OperandArg{0}, int64_t(3), int64_t(-1), int64_t(1)}, {3});
  });
}

/// Indices that differ along dim 1 of a [6, 3] index into 5 places.
ValueId distinct(Builder &b) {
  ValueId index = b.integers({6, 3}, 2);
  at::Tensor places = b.tensor(index);
  for (int64_t row = 0; row < 6; ++row)
    for (int64_t k = 0; k < 3; ++k)
      places[row][k] = (row + k) % 5;
  return index;
}

void addScattering(SampleTable &table) {
  auto self = [](Builder &b) {
    ValueId x = b.normal({6, 5});
    b.factors(x, {2, 3, 5});
    return x;
  };
  table["aten::scatter.src"] = one([=](Builder &b) {
    b.run("aten::scatter.src", {self(b), distinct(b), b.normal({6, 3})},
          {OperandArg{0}, int64_t(1), OperandArg{1}, OperandArg{2}}, {6, 5});
  });
  auto value = [=](double number) {
    return [=](Builder &b) {
      b.run("aten::scatter.value", {self(b), distinct(b)},
            {OperandArg{0}, int64_t(1), OperandArg{1}, number}, {6, 5});
    };
  };
  table["aten::scatter.value"] = several({value(1.5), value(0.0)});
  table["aten::scatter_add"] = several(
      {[=](Builder &b) {
         b.run("aten::scatter_add",
               {self(b), b.integers({6, 3}, 5), b.normal({6, 3})},
               {OperandArg{0}, int64_t(1), OperandArg{1}, OperandArg{2}},
               {6, 5});
       },
       [](Builder &b) {
         b.run("aten::scatter_add",
               {b.normal({4}), b.integers({7}, 4), b.normal({7})},
               {OperandArg{0}, int64_t(0), OperandArg{1}, OperandArg{2}}, {4});
       }});
  table["aten::index_add"] = one([=](Builder &b) {
    b.run("aten::index_add", {self(b), b.integers({4}, 5), b.normal({6, 4})},
          {OperandArg{0}, int64_t(1), OperandArg{1}, OperandArg{2}, 2.0},
          {6, 5});
  });
  table["aten::index_select"] = one([=](Builder &b) {
    b.run("aten::index_select", {self(b), b.integers({4}, 5)},
          {OperandArg{0}, int64_t(1), OperandArg{1}}, {6, 4});
  });
}

//===- Embedding bags -----------------------------------------------------===//

struct Bags {
  ValueId weight, indices;
  std::optional<ValueId> offsets, rowWeights;
  std::vector<Arg> tail;
};

/// Bags in rows; or in one list: of 3, 0, 2 and 1 ids.
Bags bags(Builder &b, bool isList, bool isWeighted, int64_t mode,
          int64_t padding) {
  Bags of;
  of.weight = b.normal({8, 6});
  b.factors(of.weight, {2, 4, 2, 3});
  Shape ids = isList ? Shape{6} : Shape{4, 3};
  of.indices = b.integers(ids, 8);
  b.tensor(of.indices).reshape(-1)[1] = padding < 0 ? 0 : padding;
  if (isList)
    of.offsets =
        b.leaf(at::tensor({int64_t(0), int64_t(3), int64_t(3), int64_t(5)}));
  if (isWeighted)
    of.rowWeights = b.normal(ids);
  of.tail = {mode, false, padding};
  return of;
}

void addOperand(std::vector<ValueId> &operands, std::vector<Arg> &args,
                std::optional<ValueId> operand) {
  if (!operand)
    return args.push_back({});
  args.push_back(OperandArg{static_cast<int>(operands.size())});
  operands.push_back(*operand);
}

std::function<void(Builder &)> embeddingBag(bool isList, bool isWeighted,
                                            int64_t mode, int64_t padding) {
  return [=](Builder &b) {
    Bags of = bags(b, isList, isWeighted, mode, padding);
    std::vector<ValueId> operands;
    std::vector<Arg> args;
    addOperand(operands, args, of.weight);
    addOperand(operands, args, of.indices);
    addOperand(operands, args, of.offsets);
    addOperand(operands, args, of.rowWeights);
    args.insert(args.end(), of.tail.begin(), of.tail.end());
    args.emplace_back();
    b.run("monarch::embedding_bag", operands, args, {4, 6});
  };
}

std::function<void(Builder &)>
embeddingBagBackward(bool isList, bool isWeighted, int64_t mode,
                     int64_t padding, std::vector<bool> wanted) {
  return [=](Builder &b) {
    Bags of = bags(b, isList, isWeighted, mode, padding);
    std::vector<ValueId> operands;
    std::vector<Arg> args;
    addOperand(operands, args, b.normal({4, 6}));
    addOperand(operands, args,
               wanted[1] ? std::optional(of.weight) : std::nullopt);
    addOperand(operands, args, of.indices);
    addOperand(operands, args, of.offsets);
    addOperand(operands, args, of.rowWeights);
    args.insert(args.end(), of.tail.begin(), of.tail.end());
    args.push_back(wanted[0] ? Arg(ResultSize{0, 0}) : Arg(int64_t(8)));
    args.emplace_back();
    args.push_back(wanted);
    Shapes shapes(2);
    if (wanted[0])
      shapes[0] = Shape{8, 6};
    if (wanted[1])
      shapes[1] = isList ? Shape{6} : Shape{4, 3};
    b.runAll("monarch::embedding_bag_backward", operands, args, shapes);
  };
}

void addBags(SampleTable &table) {
  table["monarch::embedding_bag"] = several(
      {embeddingBag(false, false, 0, -1), embeddingBag(false, false, 1, 2),
       embeddingBag(true, true, 0, 3), embeddingBag(true, false, 1, -1)});
  table["monarch::embedding_bag_backward"] =
      several({embeddingBagBackward(false, true, 0, 2, {true, true}),
               embeddingBagBackward(false, false, 1, 2, {true, false}),
               embeddingBagBackward(true, true, 0, -1, {true, true}),
               embeddingBagBackward(true, false, 1, 3, {true, false}),
               embeddingBagBackward(true, true, 0, 2, {false, true})});
}

//===- Grouped products ---------------------------------------------------===//

struct Grouped {
  ValueId x, weight, ends;
};

/// Groups of 2, 0, 3 and 1 rows; one row is of no group.
Grouped grouped(Builder &b) {
  ValueId x = b.normal({7, 6}), weight = b.normal({4, 6, 5});
  b.factors(weight, {2, 2, 6, 5});
  return {x, weight, b.leaf(at::tensor({2, 2, 5, 6}, at::kInt))};
}

void addGrouped(SampleTable &table) {
  table["monarch::grouped_mm"] = one([](Builder &b) {
    Grouped of = grouped(b);
    b.run("monarch::grouped_mm", {of.x, of.weight, of.ends},
          operandArgs(3, {std::monostate()}), {7, 5});
  });
  auto backward = [](std::vector<bool> wanted) {
    return [=](Builder &b) {
      Grouped of = grouped(b);
      Shapes shapes(2);
      if (wanted[0])
        shapes[0] = Shape{7, 6};
      if (wanted[1])
        shapes[1] = Shape{4, 6, 5};
      b.runAll("monarch::grouped_mm_backward",
               {b.normal({7, 5}), of.x, of.weight, of.ends},
               operandArgs(4, {std::monostate(), wanted}), shapes);
    };
  };
  table["monarch::grouped_mm_backward"] =
      several({backward({true, true}), backward({false, true})});
}

} // namespace

void addSelectionSamples(SampleTable &table) {
  addSorting(table);
  addScattering(table);
  addBags(table);
  addGrouped(table);
}

} // namespace monarch::test
