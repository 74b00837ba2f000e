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
    schemas.def("batch_norm(Tensor x, Tensor? weight, Tensor? bias, Tensor? "
                "running_mean, Tensor? running_var, float momentum, float "
                "eps) -> (Tensor y, Tensor mean, Tensor rstd, Tensor "
                "new_mean, Tensor new_var)");
    schemas.def("batch_norm_backward(Tensor grad, Tensor x, Tensor? weight, "
                "Tensor mean, Tensor rstd, float eps, bool[3] need) -> "
                "(Tensor, Tensor, Tensor)");
    schemas.def("group_norm(Tensor x, Tensor? weight, Tensor? bias, float "
                "eps) -> (Tensor y, Tensor mean, Tensor rstd)");
    schemas.def("group_norm_backward(Tensor grad, Tensor x, Tensor mean, "
                "Tensor rstd, Tensor? weight, bool[3] need) -> (Tensor, "
                "Tensor, Tensor)");
    schemas.def("embedding_bag(Tensor weight, Tensor indices, Tensor? "
                "offsets, Tensor? row_weights, int mode, bool includes_last, "
                "int padding, Tensor? held) -> Tensor");
    schemas.def("embedding_bag_backward(Tensor grad, Tensor? weight, Tensor "
                "indices, Tensor? offsets, Tensor? row_weights, int mode, "
                "bool includes_last, int padding, int table_rows, Tensor? "
                "held, bool[2] need) -> (Tensor, Tensor)");
    schemas.def("grouped_mm(Tensor x, Tensor weight, Tensor ends, Tensor? "
                "begins) -> Tensor");
    schemas.def("grouped_mm_backward(Tensor grad, Tensor x, Tensor weight, "
                "Tensor ends, Tensor? begins, bool[2] need) -> (Tensor, "
                "Tensor)");
    cpu.impl("attention", attentionCpu);
    cpu.impl("attention_backward", attentionBackwardCpu);
    cpu.impl("dropout", dropoutCpu);
    cpu.impl("dropout_backward", dropoutBackwardCpu);
    cpu.impl("batch_norm", batchNormCpu);
    cpu.impl("batch_norm_backward", batchNormBackwardCpu);
    cpu.impl("group_norm", groupNormCpu);
    cpu.impl("group_norm_backward", groupNormBackwardCpu);
    cpu.impl("embedding_bag", embeddingBagCpu);
    cpu.impl("embedding_bag_backward", embeddingBagBackwardCpu);
    cpu.impl("grouped_mm", groupedMatmulCpu);
    cpu.impl("grouped_mm_backward", groupedMatmulBackwardCpu);
    meta.impl("batch_norm", batchNormMeta);
    meta.impl("batch_norm_backward", batchNormBackwardMeta);
    meta.impl("group_norm", groupNormMeta);
    meta.impl("group_norm_backward", groupNormBackwardMeta);
    meta.impl("embedding_bag", embeddingBagMeta);
    meta.impl("embedding_bag_backward", embeddingBagBackwardMeta);
    meta.impl("grouped_mm", groupedMatmulMeta);
    meta.impl("grouped_mm_backward", groupedMatmulBackwardMeta);
    meta.impl("attention", attentionMeta);
    meta.impl("attention_backward", attentionBackwardMeta);
    meta.impl("dropout", dropoutMeta);
    meta.impl("dropout_backward", dropoutBackwardMeta);
  }
};

} // namespace

void registerOps() { static const Registration registration; }

} // namespace monarch
