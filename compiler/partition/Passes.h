//===- Passes.h - passes over dist ----------------------------------------===//
#pragma once

#include "dialects/dist/DistDialect.h"

#include "mlir/Pass/Pass.h"

namespace monarch {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/partition/Passes.h.inc"

} // namespace monarch
