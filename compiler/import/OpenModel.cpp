//===- OpenModel.cpp - the archive of an exported program -----------------===//
#include "compiler/import/ReadProgram.h"
#include "compiler/import/RecognizeFile.h"

#include <fstream>

namespace monarch {

Expected<ModelArchive> openModel(const std::string &path) {
  std::string head(64, '\0');
  {
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<size_t>(file.gcount()));
    // A file that cannot be opened is the archive reader's to explain.
    if (file.is_open() && head.compare(0, 2, "PK") != 0)
      return notAnArchive(path, head);
  }
  auto archive = ZipArchive::open(path);
  if (!archive)
    return archive.error();
  const std::string folder = "models/", ending = ".json";
  std::string model;
  for (const auto &[name, record] : archive->records()) {
    if (name.rfind(folder, 0) != 0 ||
        name.size() <= folder.size() + ending.size() ||
        name.compare(name.size() - ending.size(), ending.size(), ending) != 0)
      continue;
    if (!model.empty())
      return Error{"MP1006", ExitCode::BadInput,
                   "this archive holds several models", path,
                   "save one model a file"};
    model =
        name.substr(folder.size(), name.size() - folder.size() - ending.size());
  }
  if (!model.empty())
    return ModelArchive{std::move(*archive), std::move(model)};
  if (isTorchScript(*archive))
    return ModelArchive{std::move(*archive), "", /*isScript=*/true};
  return notAProgram(*archive);
}

} // namespace monarch
