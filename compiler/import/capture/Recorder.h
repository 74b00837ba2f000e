//===- Recorder.h - ops below autograd, written down ----------------------===//
//
// While a RecordingScope lives, each op that touches a recorded tensor, and
// each factory, becomes an Op of the recorder's graph. Its shape comes from
// LibTorch's Meta kernel or from a rule of our own (ShapeRules.h). Ops on real
// CPU tensors alone are constants of the formulas: they run.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/RecordedTensor.h"

#include <ATen/core/dispatch/Dispatcher.h>

#include <exception>
#include <functional>

namespace monarch {

/// Carries an Error through LibTorch's frames, to Capture.cpp.
class CaptureFailure : public std::exception {
public:
  explicit CaptureFailure(Error error) : error(std::move(error)) {}
  const char *what() const noexcept override { return error.what.c_str(); }

  const Error error;
};

/// LibTorch's message without the tables that follow it.
std::string firstLine(const c10::Error &error);

class Recorder {
public:
  Graph graph;
  Phase phase = Phase::Forward;
  /// Of the node that runs.
  std::string module;
  std::string source;
  /// Called with each op of the backward.
  std::function<void(OpId)> onBackwardOp;

  /// A leaf, wrapped for functionalisation; the graph's tables are the
  /// caller's.
  at::Tensor leaf(ValueKind kind, std::string name, DType type,
                  const std::vector<int64_t> &shape);
  ValueId idOf(const at::Tensor &tensor) const;
  void record(const c10::OperatorHandle &handle, torch::jit::Stack &stack);
  /// An op that LibTorch does not know, with types and shapes of its results.
  std::vector<at::Tensor> recordOpaque(Op op, std::vector<Value> results);

private:
  struct Call;

  ValueId addValue(Value value);
  int addOperand(Op &op, ValueId id);
  Arg constantArg(Op &op, const at::Tensor &tensor);
  Arg tensorArg(Call &call, const at::Tensor &tensor, at::Tensor &meta);
  Arg convert(Call &call, const c10::Argument &argument, c10::IValue &value);
  at::Tensor addResult(Op &op, const at::Tensor &meta);
};

/// The recorder that ops are sent to. One at a time, on one thread.
Recorder &currentRecorder();

class RecordingScope {
public:
  explicit RecordingScope(Recorder &recorder);
  ~RecordingScope();
  RecordingScope(const RecordingScope &) = delete;
  RecordingScope &operator=(const RecordingScope &) = delete;

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace monarch
