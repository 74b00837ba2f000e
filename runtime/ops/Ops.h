//===- Ops.h - the project's own ops --------------------------------------===//
//
// Ops whose saved outputs or decomposition differ by device in PyTorch, defined
// once, in namespace "monarch", with kernels for CPU and Meta:
//
//   attention(Tensor q, Tensor k, Tensor v, Tensor? mask, bool is_causal,
//             float scale) -> (Tensor out, Tensor logsumexp)
//   attention_backward(Tensor grad_out, Tensor q, Tensor k, Tensor v,
//             Tensor? mask, Tensor out, Tensor logsumexp, bool is_causal,
//             float scale, bool[4] need) -> (Tensor, Tensor, Tensor, Tensor)
//   dropout(Tensor x, Tensor rng, int stream, float p, Tensor[] rows,
//           int[] sizes) -> (Tensor y, Tensor mask)
//   dropout_backward(Tensor grad, Tensor mask, float p) -> Tensor
//
// Attention: q [B,H,Q,D], k [B,H,S,D], v [B,H,S,E], as many heads in each; mask
// bool (true: seen) or additive, broadcast to [B,H,Q,S]; causal rows are
// counted from the top left. out [B,H,Q,E] and the gradients of q, k and v are
// laid out as (B, rows, H, width), so that merging the heads again is a view.
// logsumexp [B,H,Q] is float32, float64 for float64; a row that sees nothing
// has 0 there and zeros in out. attention_backward's undefined results are
// those that `need` (q, k, v, mask) does not ask for.
//
// Dropout: rng is int64[3] (seed, step, unit). rows and sizes are empty for the
// whole tensor; a part of it gives the global indices along each dim and the
// sizes of the whole in one unit. Element e = unit * product(sizes) + row-major
// index; y = x / (1 - p) where kept, 0 elsewhere.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace monarch {

/// Makes the ops known to PyTorch's dispatcher; later calls do nothing.
void registerOps();

} // namespace monarch
