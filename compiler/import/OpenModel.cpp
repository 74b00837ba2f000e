//===- OpenModel.cpp - what kind of file this is --------------------------===//
//
// Decided from the first bytes, the names of records and, for archives of
// torch.save, the names of classes that the pickle mentions. No pickle is run.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ReadProgram.h"

#include <algorithm>
#include <fstream>

namespace monarch {

namespace {

constexpr const char *HowToExport =
    "write it with torch.export.save(torch.export.export(model, args), "
    "\"model.pt2\")";

Error refuse(std::string id, std::string what, const std::string &path,
             std::string fix) {
  return {std::move(id), ExitCode::BadInput, std::move(what), path,
          std::move(fix)};
}

Error stateDict(const std::string &path) {
  return refuse(
      "MP1004", "this file holds weights (a state dict) but no program", path,
      std::string("build the model, load the weights into it, then ") +
          HowToExport);
}

Error pickledModule(const std::string &path) {
  return refuse("MP1005",
                "this file is a pickle of Python objects (torch.save(model)); "
                "reading it would run code",
                path,
                std::string("load it in Python if you trust it, then ") +
                    HowToExport);
}

/// What a file is that does not begin as an archive.
Error otherFile(const std::string &path, const std::string &head) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(head[i]); };
  if (head.empty())
    return refuse("MP1002", "the file is empty", path, HowToExport);
  // safetensors: the length of a JSON object in 8 bytes, then the object.
  if (head.size() >= 9 && head[8] == '{' && byte(7) == 0)
    return stateDict(path);
  // Opcode PROTO and a version.
  if (head.size() >= 2 && byte(0) == 0x80 && byte(1) >= 2 && byte(1) <= 5)
    return pickledModule(path);
  bool isText = std::all_of(head.begin(), head.end(), [](char c) {
    auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
  return refuse("MP1002",
                isText ? "this is a text file, not a .pt2 model"
                       : "this is not a .pt2 model",
                path, HowToExport);
}

/// Whether a pickle mentions classes beside those that a state dict is made
/// of. Module and class follow opcode 'c', each on a line.
bool mentionsModules(const std::string &pickle) {
  const auto isName = [](std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
      return c == '_' || c == '.' || (c >= '0' && c <= '9') ||
             (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    });
  };
  size_t at = 0;
  while ((at = pickle.find('c', at)) != std::string::npos) {
    ++at;
    size_t end = pickle.find('\n', at);
    size_t nameEnd =
        end == std::string::npos ? end : pickle.find('\n', end + 1);
    if (nameEnd == std::string::npos)
      break;
    std::string_view module(pickle.data() + at, end - at);
    std::string_view name(pickle.data() + end + 1, nameEnd - end - 1);
    if (!isName(module) || !isName(name))
      continue;
    if (module != "torch" && module != "torch._utils" &&
        module != "torch.storage" && module != "collections" &&
        module != "torch._tensor")
      return true;
    at = nameEnd; // a 'c' inside the name opens nothing
  }
  return false;
}

Error otherArchive(const ZipArchive &archive) {
  const std::string &path = archive.path();
  if (archive.find("serialized_exported_program.json"))
    return refuse("MP1006", "this .pt2 has the layout of torch 2.7 or older",
                  path, "export it again with torch 2.11 or later");
  if (archive.find("constants.pkl"))
    return refuse("MP1002", "this is a TorchScript file", path,
                  std::string("build the model in Python, then ") +
                      HowToExport);
  if (archive.find("data.pkl")) {
    auto pickle = archive.read("data.pkl");
    if (!pickle)
      return pickle.error();
    return mentionsModules(*pickle) ? pickledModule(path) : stateDict(path);
  }
  return refuse("MP1002", "this archive holds no exported program", path,
                HowToExport);
}

} // namespace

Expected<ModelArchive> openModel(const std::string &path) {
  std::string head(64, '\0');
  {
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<size_t>(file.gcount()));
    // A file that cannot be opened is the archive reader's to explain.
    if (file.is_open() && head.compare(0, 2, "PK") != 0)
      return otherFile(path, head);
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
      return refuse("MP1006", "this archive holds several models", path,
                    "save one model a file");
    model =
        name.substr(folder.size(), name.size() - folder.size() - ending.size());
  }
  if (model.empty())
    return otherArchive(*archive);
  return ModelArchive{std::move(*archive), std::move(model)};
}

} // namespace monarch
