//===- Locations.cpp - where an op comes from -----------------------------===//

#include "dialects/aten/Locations.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/SmallVector.h"

#include <fmt/format.h>

using namespace mlir;

namespace monarch::aten {

/// Of a source "file.py:12"; one without a line gets line 0.
static Location sourceLocation(StringRef source, MLIRContext *context) {
  auto [file, text] = source.rsplit(':');
  unsigned line = 0;
  bool hasLine = !text.empty() && text[0] != '0' &&
                 !text.getAsInteger(10, line) && line != 0;
  return hasLine ? FileLineColLoc::get(context, file, line, 0)
                 : FileLineColLoc::get(context, source, 0, 0);
}

Location locationOf(const Op &op, MLIRContext *context) {
  SmallVector<Location> parts;
  if (!op.module.empty())
    parts.push_back(NameLoc::get(StringAttr::get(context, op.module)));
  if (!op.source.empty())
    parts.push_back(sourceLocation(op.source, context));
  return parts.empty() ? Location(UnknownLoc::get(context))
                       : FusedLoc::get(context, parts);
}

void readLocation(Location location, Op &op) {
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      readLocation(part, op);
  } else if (auto name = dyn_cast<NameLoc>(location)) {
    op.module = name.getName().str();
  } else if (auto line = dyn_cast<FileLineColLoc>(location)) {
    op.source = line.getFilename().str();
    if (line.getLine() != 0)
      op.source += fmt::format(":{}", line.getLine());
  }
}

} // namespace monarch::aten
