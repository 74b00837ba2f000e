//===- RecognizeFile.cpp - what a file is that is no .pt2 -----------------===//
//
// Decided from the first bytes, the names of records and, for archives of
// torch.save, the names of classes that the pickle mentions. No pickle is run.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/RecognizeFile.h"

#include <algorithm>
#include <filesystem>

namespace monarch {

namespace {

constexpr const char *HowToExport =
    "write it with torch.export.save(torch.export.export(model, args), "
    "\"model.pt2\")";

constexpr const char *HowToBuildAndExport =
    "build the model in Python, then write it with torch.export.save";

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

/// Formats by the bytes that they begin with.
struct Format {
  std::string_view magic;
  const char *what;
  const char *fix;
};

constexpr Format Formats[] = {
    {"version https://git-lfs.github.com/spec",
     "this is a pointer of Git LFS; the file itself was never fetched",
     "run git lfs pull in the repository it comes from"},
    {"GGUF", "this is a GGUF file: weights, but no program",
     HowToBuildAndExport},
    {"\x89HDF\r\n", "this is an HDF5 file (Keras weights?), not a program",
     HowToBuildAndExport},
    {"\x1f\x8b", "this file is compressed with gzip", "unpack it first"},
    {"\x28\xb5\x2f\xfd", "this file is compressed with zstd",
     "unpack it first"},
    {"\xfd"
     "7zXZ",
     "this file is compressed with xz", "unpack it first"},
};

bool startsWithIgnoringCase(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::equal(prefix.begin(), prefix.end(), text.begin(),
                    [](char a, char b) {
                      return a == (b >= 'A' && b <= 'Z' ? b - 'A' + 'a' : b);
                    });
}

bool isHtml(std::string_view head) {
  head.remove_prefix(std::min(head.find_first_not_of(" \r\n\t"), head.size()));
  return startsWithIgnoringCase(head, "<!doctype html") ||
         startsWithIgnoringCase(head, "<html");
}

/// A protocol buffer whose field 1 is a small version and whose next field is
/// one of ModelProto's: producer name, domain, graph, imports of operators.
bool isOnnx(std::string_view head) {
  constexpr std::string_view NextTags = "\x12\x1a\x22\x2a\x32\x3a\x42";
  return head.size() > 2 && head[0] == '\x08' && head[1] > 0 && head[1] < 32 &&
         NextTags.find(head[2]) != std::string_view::npos;
}

/// The length of a JSON object in 8 bytes, then the object.
bool isSafetensors(std::string_view head) {
  return head.size() >= 9 && head[8] == '{' && head[7] == 0;
}

/// Opcode PROTO and a version.
bool isPickle(std::string_view head) {
  return head.size() >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

bool isText(std::string_view head) {
  return std::all_of(head.begin(), head.end(), [](char c) {
    auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || c == '\n' || c == '\r' || c == '\t';
  });
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

bool hasRecordBelow(const ZipArchive &archive, std::string_view folder) {
  const auto &records = archive.records();
  auto found = records.lower_bound(std::string(folder));
  return found != records.end() &&
         found->first.compare(0, folder.size(), folder) == 0;
}

} // namespace

Error notAnArchive(const std::string &path, std::string_view head) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return refuse("MP1002", "this is a folder, not a .pt2 model", path,
                  "name the file in it, or export the model");
  if (head.empty())
    return refuse("MP1002", "the file is empty", path, HowToExport);
  for (const Format &format : Formats)
    if (head.substr(0, format.magic.size()) == format.magic)
      return refuse("MP1002", format.what, path, format.fix);
  if (isHtml(head))
    return refuse("MP1002",
                  "this is a web page, perhaps an error page saved "
                  "as a model",
                  path, "download the model again; look at the page for why");
  if (isSafetensors(head))
    return stateDict(path);
  if (isPickle(head))
    return pickledModule(path);
  if (isOnnx(head))
    return refuse("MP1002",
                  "this is an ONNX model; its backward cannot be derived", path,
                  HowToBuildAndExport);
  return refuse("MP1002",
                isText(head) ? "this is a text file, not a .pt2 model"
                             : "this is not a .pt2 model",
                path, HowToExport);
}

bool isTorchScript(const ZipArchive &archive) {
  return archive.find("constants.pkl") && archive.find("data.pkl") &&
         hasRecordBelow(archive, "code/");
}

Error notAProgram(const ZipArchive &archive) {
  const std::string &path = archive.path();
  if (archive.find("serialized_exported_program.json"))
    return refuse("MP1006", "this .pt2 has the layout of torch 2.7 or older",
                  path, "export it again with torch 2.11 or later");
  if (hasRecordBelow(archive, "data/aotinductor/"))
    return refuse("MP1006",
                  "this .pt2 is a compiled package: machine code, no graph",
                  path,
                  "give the .pt2 of torch.export.save, from before "
                  "aoti_compile_and_package");
  if (archive.find("data.pkl")) {
    auto pickle = archive.read("data.pkl");
    if (!pickle)
      return pickle.error();
    return mentionsModules(*pickle) ? pickledModule(path) : stateDict(path);
  }
  return refuse("MP1002", "this archive holds no exported program", path,
                HowToExport);
}

} // namespace monarch
