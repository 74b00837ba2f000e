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
//   batch_norm(Tensor x, Tensor? weight, Tensor? bias, Tensor? running_mean,
//           Tensor? running_var, float momentum, float eps)
//           -> (Tensor y, Tensor mean, Tensor rstd, Tensor new_mean,
//               Tensor new_var)
//   batch_norm_backward(Tensor grad, Tensor x, Tensor? weight, Tensor mean,
//           Tensor rstd, float eps, bool[3] need) -> (Tensor, Tensor, Tensor)
//   group_norm(Tensor x, Tensor? weight, Tensor? bias, float eps)
//           -> (Tensor y, Tensor mean, Tensor rstd)
//   group_norm_backward(Tensor grad, Tensor x, Tensor mean, Tensor rstd,
//           Tensor? weight, bool[3] need) -> (Tensor, Tensor, Tensor)
//   embedding_bag(Tensor weight, Tensor indices, Tensor? offsets,
//           Tensor? row_weights, int mode, bool includes_last, int padding,
//           Tensor? held) -> Tensor
//   embedding_bag_backward(Tensor grad, Tensor? weight, Tensor indices,
//           Tensor? offsets, Tensor? row_weights, int mode,
//           bool includes_last, int padding, int table_rows, Tensor? held,
//           bool[2] need) -> (Tensor, Tensor)
//   grouped_mm(Tensor x, Tensor weight, Tensor ends, Tensor? begins) -> Tensor
//   grouped_mm_backward(Tensor grad, Tensor x, Tensor weight, Tensor ends,
//           Tensor? begins, bool[2] need) -> (Tensor, Tensor)
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
// Batch norm: x [N,C,...] normalised over all but C with the batch's own
// statistics, in training. The new running statistics (undefined without old
// ones) are results; nothing is written in place. Statistics are float32,
// float64 for float64.
//
// Group norm: x [N,G,K,...], weight and bias [G,K]: the K channels of a group
// are normalised together with the dims that follow. Statistics as above.
//
// Embedding bag: row i of the result is the sum (mode 0) or mean (mode 1) of
// the table rows that bag i names: row i of indices [bags, ids], or ids from
// offsets[i] on in one list. Ids equal to `padding` (-1: none) count for
// nothing. row_weights multiply, one an id, in sums only. `held` maps ids to
// rows of `weight`, -1 where the table's row is elsewhere; such ids add nothing
// but are counted by means. table_rows: those of the gradient, and of `weight`.
//
// Grouped matmul: rows begins[i] (absent: ends[i - 1], 0 first) to ends[i] of x
// [rows,k] times weight[i] [k,n]; rows of no group give zeros.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace monarch {

/// Makes the ops known to PyTorch's dispatcher; later calls do nothing.
void registerOps();

} // namespace monarch
