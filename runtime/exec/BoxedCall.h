//===- BoxedCall.h - one ATen call, resolved once -------------------------===//
//
// An instruction's schema is looked up and its literals become IValues when the
// program is loaded; a run only fills in tensors and calls the dispatcher.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/Program.h"

#include <ATen/core/Tensor.h>

#include <memory>

namespace monarch::runtime {

class BoxedCall {
public:
  /// `evaluate` gives the rank's value of an expression. MP4004 when the
  /// schema is unknown or an argument does not fit it.
  static Expected<BoxedCall> resolve(const Instruction &instruction,
                                     const RankView &view);
  BoxedCall(BoxedCall &&other) noexcept;
  BoxedCall &operator=(BoxedCall &&other) noexcept;
  ~BoxedCall();

  /// `operands` by Instruction::operands. The tensors that the op returns,
  /// lists flattened. Throws what the op throws.
  std::vector<at::Tensor> run(const std::vector<at::Tensor> &operands) const;

private:
  struct Resolved;
  explicit BoxedCall(std::unique_ptr<Resolved> resolved);
  std::unique_ptr<Resolved> resolved;
};

} // namespace monarch::runtime
