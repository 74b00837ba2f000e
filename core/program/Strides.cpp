//===- Strides.cpp --------------------------------------------------------===//
//
// See Strides.h. Strides of dims of size 1 mean nothing and are never compared.
//
//===----------------------------------------------------------------------===//
#include "core/program/Strides.h"

#include <algorithm>

namespace monarch {

namespace {

using Sizes = std::vector<int64_t>;

struct Strided {
  Sizes shape, strides;
};

Sizes rowMajor(const Sizes &shape) {
  Sizes strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = multiplySizes(strides[dim], shape[dim]);
  return strides;
}

bool isContiguous(const Strided &tensor) {
  if (std::count(tensor.shape.begin(), tensor.shape.end(), 0))
    return true;
  Sizes expected = rowMajor(tensor.shape);
  for (size_t dim = 0; dim < expected.size(); ++dim)
    if (tensor.shape[dim] != 1 && tensor.strides[dim] != expected[dim])
      return false;
  return true;
}

class ViewCall {
public:
  ViewCall(const Instruction &call, const StageSizes &sizes, int64_t rank,
           const Strided &from)
      : call(call), sizes(sizes), rank(rank), from(from) {}

  Sizes stridesOf(const Sizes &shape) const {
    const std::string &name = call.name;
    Sizes strides = from.strides;
    if (name == "aten::t" && strides.size() == 2) {
      std::swap(strides[0], strides[1]);
    } else if (name == "aten::transpose.int" && !strides.empty()) {
      std::swap(strides[dimAt(1)], strides[dimAt(2)]);
    } else if (name == "aten::permute") {
      const auto *order = std::get_if<std::vector<Expr>>(&call.args[1]);
      for (size_t dim = 0; order && dim < order->size(); ++dim)
        strides[dim] =
            from.strides[wrapped(sizes.evaluate((*order)[dim], rank))];
    } else if (name == "aten::expand") {
      return expanded(shape);
    } else if ((name == "aten::select.int" || name == "aten::unbind.int") &&
               !strides.empty()) {
      strides.erase(strides.begin() + static_cast<int64_t>(dimAt(1)));
    } else if (name == "aten::slice.Tensor" && !strides.empty()) {
      if (call.args.size() > 4)
        strides[dimAt(1)] = multiplySizes(strides[dimAt(1)], integerAt(4, 1));
    } else if (name == "aten::view_as_real") {
      // A complex number is two reals side by side.
      for (int64_t &stride : strides)
        stride = multiplySizes(stride, 2);
      strides.push_back(1);
    } else if (name == "aten::view_as_complex" && !strides.empty()) {
      strides.pop_back();
      for (int64_t &stride : strides)
        stride /= 2;
    } else if (shape.size() != from.shape.size() || shape != from.shape) {
      if (name.find("view") != std::string::npos ||
          name.find("squeeze") != std::string::npos || name == "aten::reshape")
        return regrouped(shape);
    }
    return strides.size() == shape.size() ? strides : rowMajor(shape);
  }

private:
  int64_t integerAt(size_t index, int64_t standard) const {
    const Expr *expr = index < call.args.size()
                           ? std::get_if<Expr>(&call.args[index])
                           : nullptr;
    return expr ? sizes.evaluate(*expr, rank) : standard;
  }
  size_t wrapped(int64_t dim) const {
    int64_t dims = static_cast<int64_t>(from.shape.size());
    dim = dim < 0 ? dim + dims : dim;
    return static_cast<size_t>(std::clamp<int64_t>(dim, 0, dims - 1));
  }
  size_t dimAt(size_t index) const { return wrapped(integerAt(index, 0)); }

  Sizes expanded(const Sizes &shape) const {
    Sizes strides(shape.size(), 0);
    size_t offset = shape.size() - std::min(shape.size(), from.shape.size());
    for (size_t dim = offset; dim < shape.size(); ++dim)
      if (from.shape[dim - offset] == shape[dim])
        strides[dim] = from.strides[dim - offset];
    return strides;
  }

  /// Dims of size 1 come and go; a true regrouping wants a contiguous operand.
  Sizes regrouped(const Sizes &shape) const {
    Strided kept;
    for (size_t dim = 0; dim < from.shape.size(); ++dim)
      if (from.shape[dim] != 1) {
        kept.shape.push_back(from.shape[dim]);
        kept.strides.push_back(from.strides[dim]);
      }
    Sizes wanted, strides = rowMajor(shape);
    std::copy_if(shape.begin(), shape.end(), std::back_inserter(wanted),
                 [](int64_t size) { return size != 1; });
    if (wanted != kept.shape)
      return strides;
    size_t next = 0;
    for (size_t dim = 0; dim < shape.size(); ++dim)
      if (shape[dim] != 1)
        strides[dim] = kept.strides[next++];
    return strides;
  }

  const Instruction &call;
  const StageSizes &sizes;
  int64_t rank;
  const Strided &from;
};

} // namespace

std::vector<bool> contiguousValues(const StageSizes &sizes, int64_t rank) {
  const Role &role = sizes.role();
  std::vector<bool> contiguous(role.values.size(), true);
  // Views that are not contiguous; all others are row-major.
  std::map<int32_t, Strided> strided;
  for (const Segment &segment : role.segments)
    for (const Instruction &call : segment.instructions) {
      if (call.kind != InstructionKind::Call || !isViewCall(call.name) ||
          call.operands.empty() || call.args.empty())
        continue;
      int32_t base = call.operands[0];
      auto found = strided.find(base);
      Strided from = found != strided.end() ? found->second : Strided();
      if (found == strided.end()) {
        from.shape = sizes.tensor(base, rank).shape;
        from.strides = rowMajor(from.shape);
      }
      for (int32_t id : call.results) {
        if (id == None || role.values[id].aliasOf == None)
          continue;
        Strided view{sizes.tensor(id, rank).shape, {}};
        view.strides = ViewCall(call, sizes, rank, from).stridesOf(view.shape);
        contiguous[id] = isContiguous(view);
        if (!contiguous[id])
          strided[id] = std::move(view);
      }
    }
  return contiguous;
}

} // namespace monarch
