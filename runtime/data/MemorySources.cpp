//===- MemorySources.cpp - weights and batches that are there already -----===//
//
// See MemorySources.h.
//
//===----------------------------------------------------------------------===//
#include "runtime/data/MemorySources.h"

#include "runtime/support/Tensors.h"

#include <fmt/format.h>

namespace monarch::runtime {

Error missingWeight(const WeightRequest &request, std::string what) {
  return {"MP4010", ExitCode::Stale, std::move(what), request.names[0],
          "give the weights of the model that the program was made from"};
}

Error missingBatch(const BatchRequest &request, std::string what) {
  return {
      "MP4011", ExitCode::BadInput, std::move(what),
      fmt::format("input '{}', step {}", request.input.name, request.step + 1),
      "the data holds one tensor per input of the model, rows in order"};
}

Expected<at::Tensor> MemoryWeights::read(const WeightRequest &request) {
  for (const std::string &name : request.names) {
    auto found = tensors.find(name);
    if (found == tensors.end())
      continue;
    const at::Tensor &tensor = found->second;
    if (tensor.sizes() != at::IntArrayRef(request.shape) ||
        tensor.scalar_type() != scalarTypeOf(request.type))
      return missingWeight(
          request,
          fmt::format("the tensor is {} {}, the program wants {} {}",
                      c10::toString(tensor.scalar_type()),
                      shapeText(tensor.sizes()), toString(request.type),
                      shapeText(request.shape)));
    return tensor;
  }
  return missingWeight(request, "no tensor of this name");
}

Expected<at::Tensor> MemoryBatches::read(const BatchRequest &request) {
  auto found = tensors.find(request.input.name);
  if (found == tensors.end())
    return missingBatch(request, "no tensor of this name");
  at::Tensor tensor = found->second;
  if (tensor.scalar_type() != scalarTypeOf(request.type))
    return missingBatch(request,
                        fmt::format("the tensor is {}, the program wants {}",
                                    c10::toString(tensor.scalar_type()),
                                    toString(request.type)));
  if (request.isBatched()) {
    int64_t rows = request.shape[request.input.rowDim];
    int64_t first = (request.step * request.unitsPerStep + request.unit) * rows;
    if (tensor.dim() <= request.input.rowDim ||
        tensor.size(request.input.rowDim) < first + rows)
      return missingBatch(request, "the data ends before this step");
    tensor = tensor.narrow(request.input.rowDim, first, rows);
  }
  if (tensor.sizes() != at::IntArrayRef(request.shape))
    return missingBatch(request,
                        fmt::format("rows are {}, the program wants {}",
                                    shapeText(tensor.sizes()),
                                    shapeText(request.shape)));
  return tensor;
}

} // namespace monarch::runtime
