//===- ModelInput.h - the MODEL argument, read ----------------------------===//
#pragma once

#include "compiler/import/Import.h"
#include "tools/cli/Verbs.h"

namespace monarch::cli {

/// --loss, --shape and --mode as the importer takes them; usage errors.
Expected<ImportOptions> importOptions(const ModelOptions &options);

/// Whether MODEL is a monarch.graph/1 document; no model file begins so.
bool isGraphFile(const std::string &path);

/// The graph of the model file for units of `rows` rows (the file's own when
/// absent). `facts` is filled where given, for a model file.
Expected<Graph> loadModel(const ModelOptions &options,
                          std::optional<int64_t> rows,
                          const std::string &dumpDirectory = "",
                          FileFacts *facts = nullptr);

} // namespace monarch::cli
