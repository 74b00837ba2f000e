//===- ReadProgram.h - a .pt2 archive as an exported program --------------===//
//
// Names what else a file is when it is no model: a state dict, a pickled
// module, text.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/import/Import.h"
#include "compiler/import/capture/ExportedProgram.h"
#include "core/support/Json.h"
#include "core/support/Zip.h"

namespace monarch {

/// The archive, known to hold one exported program (models/NAME.json) or a
/// TorchScript module.
struct ModelArchive {
  ZipArchive archive;
  /// "model" as torch.export.save names it; "" for TorchScript.
  std::string model;
  bool isScript = false;
};

Expected<ModelArchive> openModel(const std::string &path);
/// `facts` is filled where given.
Expected<ExportedProgram> readProgram(const ModelArchive &model,
                                      FileFacts *facts = nullptr);
/// A TorchScript file at `path`; its inputs are those of options.shapes.
Expected<ExportedProgram> readScriptModel(const std::string &path,
                                          const ImportOptions &options,
                                          FileFacts *facts);
/// `root`: the document of the program.
FileFacts factsOf(const ModelArchive &model, const ExportedProgram &program,
                  const JsonValue &root);

} // namespace monarch
