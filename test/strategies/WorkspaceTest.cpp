//===- WorkspaceTest.cpp - kernels allocate no more than is predicted -----===//
//
// Each sample's op runs alone under a counting allocator, on one thread; its
// strided results are copied as the runtime does.
//
//===----------------------------------------------------------------------===//
#include "core/registry/Rule.h"
#include "runtime/ops/Ops.h"
#include "runtime/support/MemoryTally.h"
#include "test/strategies/Calls.h"
#include "test/strategies/Samples.h"

#include <ATen/Parallel.h>
#include <catch2/catch.hpp>

using namespace monarch;
using namespace monarch::test;

namespace {

/// Numbers become tensors for the time of a call.
constexpr int64_t ScratchBytes = 64;

std::vector<TensorType> typesOf(const Graph &graph,
                                const std::vector<ValueId> &values) {
  std::vector<TensorType> types;
  for (ValueId value : values)
    if (value != None)
      types.push_back({graph.value(value).type, graph.value(value).shape});
  return types;
}

int64_t bytesOf(const std::vector<TensorType> &tensors) {
  int64_t bytes = 0;
  for (const TensorType &tensor : tensors) {
    int64_t own = byteWidth(tensor.type);
    for (int64_t size : tensor.shape)
      own *= size;
    bytes += own;
  }
  return bytes;
}

/// Bytes at the peak of a call beyond its results.
int64_t measuredWorkspace(const Sample &sample,
                          const std::vector<at::Tensor> &operands) {
  const Op &op = sample.graph.op(sample.op);
  runtime::MemoryTally tally;
  std::vector<at::Tensor> results;
  int64_t peak = 0;
  {
    runtime::MemoryScope scope(&tally);
    results = callGraphOp(op, operands, sample.graph);
    for (at::Tensor &result : results)
      if (result.defined())
        result = result.contiguous();
    peak = tally.peakBytes();
    results.clear();
  }
  return peak - bytesOf(typesOf(sample.graph, op.results));
}

} // namespace

TEST_CASE("kernels allocate no more than is predicted", "[strategies]") {
  registerOps();
  runtime::installMemoryTally();
  int threads = at::get_num_threads();
  at::set_num_threads(1);
  for (const auto &[name, make] : sampleTable())
    for (const Sample &sample : make(7)) {
      const Op &op = sample.graph.op(sample.op);
      std::vector<at::Tensor> operands;
      for (ValueId operand : op.operands)
        operands.push_back(sample.tensors[operand]);
      int64_t measured = measuredWorkspace(sample, operands);
      std::vector<TensorType> types = typesOf(sample.graph, op.operands);
      size_t next = 0;
      for (ValueId operand : op.operands)
        if (operand != None)
          types[next++].contiguous = sample.tensors[operand].is_contiguous();
      CallCost cost = callCost(name, types, typesOf(sample.graph, op.results));
      INFO(name << ": " << measured << " bytes, predicted "
                << cost.workspaceBytes);
      CHECK(measured <= cost.workspaceBytes + ScratchBytes);
    }
  at::set_num_threads(threads);
}
