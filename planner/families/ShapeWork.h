//===- ShapeWork.h - hyper-parameters to work, and in files ---------------===//
#pragma once

#include "core/support/Json.h"
#include "planner/families/ModelShape.h"
#include "planner/work/Work.h"

namespace monarch::planner {

/// Work of a model whose layers repeat, from a graph with one layer of each
/// kind: equal to that of the whole graph.
Expected<ModelWork> workOf(const ModelShape &shape, const KernelStyle &style);

/// As plans keep them.
Json shapeToJson(const ModelShape &shape);
/// Errors go to the value's document.
ModelShape readShape(const JsonValue &json);

} // namespace monarch::planner
