//===- RepeatedNodes.h - equal blocks of a program, captured once ---------===//
//
// Models repeat a block tens of times. Where the nodes prove it - the same
// targets, arguments and types, each block reading the one before it, weights
// of its own and what all blocks share - a program with four blocks is captured
// in place of the whole, and the graph of the whole is written from it. The
// first, second and last two blocks stay: the second stands for those left out,
// and that it equals the third, with all that they read and write, is what
// makes the step from one block to the next the same everywhere.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/ExportedProgram.h"

namespace monarch {

struct ShortProgram {
  /// Blocks 0, 1, 2 and the last. The source of node i of the whole program is
  /// nodeTag(i) here, and so is that of its ops.
  ExportedProgram program;
  /// Nodes [begin, begin + period * count) of the whole are `count` blocks.
  size_t begin = 0;
  size_t period = 0;
  size_t count = 0;
  /// Per leaf of the whole: its number among the leaves of its block, and the
  /// block; None where it is no block's.
  struct Place {
    int slot = None;
    int block = None;
  };
  std::vector<Place> leaves;

  static constexpr size_t KeptBlocks = 4;
  /// The blocks of the whole that are kept: 0, 1, count - 2 (which stands where
  /// block 2 was), count - 1.
  size_t keptBlock(size_t kept) const {
    return kept < 2 ? kept : count - KeptBlocks + kept;
  }
};

std::string nodeTag(size_t node);
/// None of other texts.
int nodeOfTag(const std::string &source);

/// Nullopt where no block repeats often enough to be worth it, or something
/// speaks against it.
std::optional<ShortProgram> shortenRepeats(const ExportedProgram &program);

/// The graph of the whole program from that of the short one (normalised);
/// nullopt where the captured blocks are not equal after all.
std::optional<Graph> lengthenRepeats(const Graph &graph,
                                     const ShortProgram &shortened,
                                     const ExportedProgram &whole);

} // namespace monarch
