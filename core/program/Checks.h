//===- Checks.h - the parts of the verifier -------------------------------===//
//
// Each check adds what it finds. Structure comes first: the others index into
// tables without looking. Ids, by part:
//   MP211x tables and instructions    MP212x lifetimes   MP213x schedule
//   MP214x collectives and transfers  MP215x shapes      MP216x predictions
//
//===----------------------------------------------------------------------===//
#pragma once

#include "core/program/StageSizes.h"

namespace monarch {

class Findings {
public:
  void add(std::string_view id, std::string what, std::string where);
  bool empty() const { return errors.empty(); }
  std::vector<Error> take() { return std::move(errors); }

private:
  std::vector<Error> errors;
};

/// "stage 1, forward[17] aten::mm, op 12 of blocks.0.attn (model.py:31)".
std::string placeOf(const Role &role, const Segment &segment, size_t index);
/// "3 'transformer.h.0.attn.c_attn.weight'".
std::string nameOf(const Role &role, int32_t value);

bool isCollective(InstructionKind kind);
/// The call writes its first operand ("aten::add_.Tensor").
bool isInPlace(const Instruction &instruction);
/// The value at the end of the chain of aliases.
int32_t rootOf(const Role &role, int32_t value);
const Segment *segmentOf(const Role &role, SegmentKind kind);

/// Mesh, tables, shards, expressions, ids and operand counts.
void checkStructure(const Program &program, Findings &findings);
/// Sizes are neither negative nor huge; leaves have the shape of their layout.
void checkSizes(const Program &program, const StageSizes &sizes,
                Findings &findings);
/// Defined before use, not used after Free, freed once, in the right segment.
void checkLifetimes(const Role &role, Findings &findings);
/// Each unit once, forward before backward, Begin after Counts, Step last.
void checkSchedule(const Program &program, const Role &role,
                   Findings &findings);
/// Group members agree on sizes; buffers have the sizes declared.
void checkCollectives(const StageSizes &sizes, Findings &findings);
/// Sends and receives match one to one, and the stages reach the end.
void checkTransfers(const Program &program,
                    const std::vector<StageSizes> &sizes, Findings &findings);
/// Master copies are float32 copies of their parameters, which follow them.
void checkMasters(const StageSizes &sizes, Findings &findings);
/// Results of the common calls have the declared shape and type.
void checkShapes(const StageSizes &sizes, Findings &findings);
/// Bytes, counts and peak are the predicted ones.
void checkPredictions(const Program &program,
                      const std::vector<StageSizes> &sizes, Findings &findings);

} // namespace monarch
