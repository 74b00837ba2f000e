//===- Passes.h - passes over aten ----------------------------------------===//
#pragma once

#include "dialects/aten/AtenDialect.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace monarch {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "compiler/analyze/Passes.h.inc"

} // namespace monarch
