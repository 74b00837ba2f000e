//===- Structure.cpp - sections and factors of every value ----------------===//

#include "core/strategy/Structure.h"

#include "core/strategy/DimClasses.h"

#include <algorithm>
#include <cassert>

namespace monarch {

std::vector<RowMajorGroup>
rowMajorGroups(const std::vector<int64_t> &operandShape,
               const std::vector<int64_t> &resultShape) {
  auto dimsOf = [](const std::vector<int64_t> &shape) {
    std::vector<int> dims;
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != 1)
        dims.push_back(static_cast<int>(i));
    return dims;
  };
  auto isEmpty = [](const std::vector<int64_t> &shape) {
    return std::find(shape.begin(), shape.end(), 0) != shape.end();
  };
  std::vector<RowMajorGroup> groups;
  if (isEmpty(operandShape) || isEmpty(resultShape))
    return groups;
  std::vector<int> left = dimsOf(operandShape), right = dimsOf(resultShape);
  size_t i = 0, j = 0;
  while (i < left.size() && j < right.size()) {
    RowMajorGroup group{{left[i]}, {right[j]}};
    int64_t leftSize = operandShape[left[i++]];
    int64_t rightSize = resultShape[right[j++]];
    while (leftSize != rightSize) {
      if (leftSize < rightSize) {
        assert(i < left.size() && "a view keeps the number of elements");
        group.operandDims.push_back(left[i]);
        leftSize *= operandShape[left[i++]];
      } else {
        assert(j < right.size() && "a view keeps the number of elements");
        group.resultDims.push_back(right[j]);
        rightSize *= resultShape[right[j++]];
      }
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

namespace {

/// `child` is [begin, end) of `parent`.
struct SectionRelation {
  int parent;
  int64_t begin;
  int64_t end;
  int child;
};

/// Both lists of dims hold the same elements, row-major.
struct ProductRelation {
  std::vector<int> operand;
  std::vector<int> result;
};

class Inference {
public:
  Inference(const Graph &graph, const std::vector<const OpRule *> &rules)
      : graph(graph) {
    for (const Value &value : graph.values) {
      firstDim.push_back(dimCount);
      for (int64_t size : value.shape)
        dimCount = classes.add(size) + 1;
    }
    for (size_t id = 0; id < graph.ops.size(); ++id)
      if (const OpRule *rule = rules[id])
        relate(graph.ops[id], *rule);
    relateGradients();
  }

  std::vector<TensorStructure> run() {
    do
      for (const SectionRelation &relation : sectionRelations)
        copyCuts(relation);
    while (classes.takeChanged());
    do {
      for (const SectionRelation &relation : sectionRelations)
        copySuffixes(relation);
      for (const ProductRelation &relation : productRelations)
        alignFactors(relation);
    } while (classes.takeChanged());

    std::vector<TensorStructure> result(graph.values.size());
    for (size_t value = 0; value < graph.values.size(); ++value)
      for (size_t i = 0; i < graph.values[value].shape.size(); ++i)
        result[value].push_back(classes.structure(dim(value, i)));
    return result;
  }

private:
  int dim(ValueId value, size_t index) const {
    return firstDim[value] + static_cast<int>(index);
  }

  void mergeAll(ValueId a, ValueId b) {
    assert(graph.values[a].shape == graph.values[b].shape);
    for (size_t i = 0; i < graph.values[a].shape.size(); ++i)
      classes.merge(dim(a, i), dim(b, i));
  }

  void relate(const Op &op, const OpRule &rule) {
    if (rule.isView)
      relateView(op);
    else
      relateLabels(op, rule);
  }

  void relateView(const Op &op) {
    ValueId operand = op.operands[0], result = op.results[0];
    for (const RowMajorGroup &group : rowMajorGroups(
             graph.values[operand].shape, graph.values[result].shape)) {
      if (group.isOneToOne()) {
        classes.merge(dim(operand, group.operandDims[0]),
                      dim(result, group.resultDims[0]));
        continue;
      }
      ProductRelation relation;
      for (int i : group.operandDims)
        relation.operand.push_back(dim(operand, i));
      for (int i : group.resultDims)
        relation.result.push_back(dim(result, i));
      productRelations.push_back(std::move(relation));
    }
  }

  void relateLabels(const Op &op, const OpRule &rule) {
    std::map<std::string, int> whole;
    auto visit = [&](auto &&action) {
      auto visitSide = [&](const std::vector<ValueId> &values,
                           const std::vector<std::vector<DimLabel>> &labels) {
        for (size_t k = 0; k < values.size(); ++k)
          if (values[k] != None)
            for (size_t i = 0; i < labels[k].size(); ++i)
              if (!labels[k][i].name.empty())
                action(labels[k][i], dim(values[k], i));
      };
      visitSide(op.operands, rule.operands);
      visitSide(op.results, rule.results);
    };
    visit([&](const DimLabel &label, int d) {
      if (label.end != -1)
        return;
      auto [position, isNew] = whole.try_emplace(label.name, d);
      if (!isNew)
        classes.merge(position->second, d);
    });
    visit([&](const DimLabel &label, int d) {
      auto parent = whole.find(label.name);
      if (label.end == -1 || parent == whole.end())
        return;
      if (label.begin == 0 && label.end == classes.size(parent->second))
        classes.merge(parent->second, d);
      else
        sectionRelations.push_back({parent->second, label.begin, label.end, d});
    });
  }

  void relateGradients() {
    for (size_t id = 0; id < graph.values.size(); ++id)
      for (ValueId primal : graph.values[id].cotangentOf)
        mergeAll(primal, static_cast<ValueId>(id));
    for (const Parameter &parameter : graph.parameters)
      for (ValueId gradient : parameter.gradients)
        mergeAll(parameter.value, gradient);
    for (const Buffer &buffer : graph.buffers)
      if (buffer.updated != None && graph.values[buffer.updated].shape ==
                                        graph.values[buffer.value].shape)
        mergeAll(buffer.value, buffer.updated);
  }

  /// Both borders of the child were accepted by the parent.
  bool holds(const SectionRelation &relation) const {
    return classes.hasBorder(relation.parent, relation.begin) &&
           classes.hasBorder(relation.parent, relation.end);
  }

  void copyCuts(const SectionRelation &relation) {
    classes.addCut(relation.parent, relation.begin);
    classes.addCut(relation.parent, relation.end);
    if (!holds(relation))
      return;
    auto parent = classes.sections(relation.parent);
    for (const auto &section : parent)
      if (section.begin > relation.begin && section.begin < relation.end)
        classes.addCut(relation.child, section.begin - relation.begin);
    auto child = classes.sections(relation.child);
    for (const auto &section : child)
      classes.addCut(relation.parent, section.begin + relation.begin);
  }

  void copySuffixes(const SectionRelation &relation) {
    if (!holds(relation))
      return;
    for (size_t c = 0; c < classes.sections(relation.child).size(); ++c)
      for (size_t p = 0; p < classes.sections(relation.parent).size(); ++p) {
        auto child = classes.sections(relation.child)[c];
        auto parent = classes.sections(relation.parent)[p];
        if (child.begin + relation.begin != parent.begin ||
            child.end + relation.begin != parent.end)
          continue;
        for (int64_t suffix : parent.suffixes)
          classes.addSuffix(relation.child, c, suffix);
        for (int64_t suffix : child.suffixes)
          classes.addSuffix(relation.parent, p, suffix);
      }
  }

  /// Every border on one side becomes one on the other, if together they are a
  /// divisor chain. A dim in sections counts as one factor: sections exist only
  /// where a dim stands alone.
  void alignFactors(const ProductRelation &relation) {
    std::vector<int64_t> borders;
    std::vector<std::pair<int, int64_t>> suffixes;
    for (const std::vector<int> *side : {&relation.operand, &relation.result}) {
      int64_t suffix = 1;
      for (auto d = side->rbegin(); d != side->rend(); ++d) {
        borders.push_back(suffix);
        suffixes.push_back({*d, suffix});
        if (!classes.isCut(*d))
          for (int64_t inner : classes.sections(*d)[0].suffixes)
            borders.push_back(suffix * inner);
        suffix *= classes.size(*d);
      }
    }
    std::sort(borders.begin(), borders.end());
    for (size_t i = 1; i < borders.size(); ++i)
      if (borders[i] % borders[i - 1] != 0)
        return;
    for (auto [d, suffix] : suffixes)
      if (!classes.isCut(d))
        for (int64_t border : borders)
          if (border % suffix == 0)
            classes.addSuffix(d, 0, border / suffix);
  }

  const Graph &graph;
  DimClasses classes;
  std::vector<int> firstDim;
  int dimCount = 0;
  std::vector<SectionRelation> sectionRelations;
  std::vector<ProductRelation> productRelations;
};

} // namespace

std::vector<TensorStructure>
inferStructures(const Graph &graph, const std::vector<const OpRule *> &rules) {
  return Inference(graph, rules).run();
}

} // namespace monarch
