//===- DataDependent.h - what no plan can be made for ---------------------===//
//
// Loops, sizes and numbers that depend on the data of tensors: shapes of a plan
// are known before any data is.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/capture/ExportedProgram.h"

namespace monarch {

/// All such nodes of the program in one error, each with its module and source
/// line.
std::optional<Error> findDataDependence(const ExportedProgram &program);

} // namespace monarch
