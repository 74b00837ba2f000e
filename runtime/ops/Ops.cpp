//===- Ops.cpp - schemas and registration ---------------------------------===//
//
// Explicit, not by static initialisers: a static library's unused objects are
// dropped by the linker.
//
//===----------------------------------------------------------------------===//
#include "runtime/ops/Ops.h"
#include "runtime/ops/Kernels.h"

#include <torch/library.h>

namespace monarch {

namespace {

struct Registration {
  torch::Library schemas{torch::Library::DEF, "monarch", std::nullopt, __FILE__,
                         __LINE__};
  torch::Library cpu{torch::Library::IMPL, "monarch", c10::DispatchKey::CPU,
                     __FILE__, __LINE__};
  torch::Library meta{torch::Library::IMPL, "monarch", c10::DispatchKey::Meta,
                      __FILE__, __LINE__};

  Registration() {
    schemas.def("attention(Tensor q, Tensor k, Tensor v, Tensor? mask, bool "
                "is_causal, float scale) -> (Tensor out, Tensor logsumexp)");
    schemas.def("attention_backward(Tensor grad_out, Tensor q, Tensor k, "
                "Tensor v, Tensor? mask, Tensor out, Tensor logsumexp, bool "
                "is_causal, float scale, bool[4] need) -> (Tensor, Tensor, "
                "Tensor, Tensor)");
    schemas.def("dropout(Tensor x, Tensor rng, int stream, float p, Tensor[] "
                "rows, int[] sizes) -> (Tensor y, Tensor mask)");
    schemas.def("dropout_backward(Tensor grad, Tensor mask, float p) -> "
                "Tensor");
    cpu.impl("attention", attentionCpu);
    cpu.impl("attention_backward", attentionBackwardCpu);
    cpu.impl("dropout", dropoutCpu);
    cpu.impl("dropout_backward", dropoutBackwardCpu);
    meta.impl("attention", attentionMeta);
    meta.impl("attention_backward", attentionBackwardMeta);
    meta.impl("dropout", dropoutMeta);
    meta.impl("dropout_backward", dropoutBackwardMeta);
  }
};

} // namespace

void registerOps() { static const Registration registration; }

} // namespace monarch
