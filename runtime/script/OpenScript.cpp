//===- OpenScript.cpp - records, code, objects, checks --------------------===//
//
// What torch::jit::load does in one call, in steps of our own, so that each can
// refuse before the next begins. LibTorch's unpickler builds plain data and
// tensors alone: names of Python's modules mean nothing to it.
//
//===----------------------------------------------------------------------===//
#include "core/support/Zip.h"
#include "runtime/script/CheckScript.h"
#include "runtime/script/MappedRecords.h"
#include "runtime/script/ScriptFile.h"
#include "runtime/script/ScriptTensors.h"
#include "runtime/script/SourceLines.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/csrc/jit/serialization/import_read.h>
#include <torch/csrc/jit/serialization/import_source.h>
#include <torch/csrc/jit/serialization/storage_context.h>

namespace monarch {

namespace {

using torch::jit::DeserializationStorageContext;

/// Of a record of code, and of all of them.
constexpr uint64_t CodeRecordLimitBytes = uint64_t{64} << 20;
constexpr uint64_t CodeLimitBytes = uint64_t{256} << 20;
constexpr size_t ListedRefusals = 8;

/// Carries an Error through LibTorch's frames.
class Refused : public std::exception {
public:
  explicit Refused(Error error) : error(std::move(error)) {}
  const char *what() const noexcept override { return error.what.c_str(); }
  const Error error;
};

bool isBelow(const std::string &record, const std::string &folder) {
  return record.compare(0, folder.size(), folder) == 0;
}

bool isCustomClass(const std::string &name) {
  return name.find("torch.classes.") != std::string::npos;
}

template <typename Visit>
void eachNode(const torch::jit::Block &block, Visit visit) {
  for (const torch::jit::Node *node : block.nodes()) {
    visit(*node);
    for (const torch::jit::Block *inner : node->blocks())
      eachNode(*inner, visit);
  }
}

} // namespace

class ScriptLoader {
public:
  ScriptLoader(std::string path, ZipArchive archive, MappedRecords mapped)
      : path(std::move(path)), archive(std::move(archive)),
        mapped(std::move(mapped)), reader(this->path),
        unit(std::make_shared<torch::jit::CompilationUnit>()) {}

  std::shared_ptr<const ScriptFile> load() {
    checkRecords();
    auto file = std::make_shared<ScriptFile>();
    auto tuple = readPickle("constants", nullptr);
    for (const c10::IValue &constant : tuple.toTupleRef().elements())
      constants.push_back(constant);
    ScriptTensors tensors(path, records);
    file->inCode = tensors.constants(constants);

    torch::jit::SourceImporter importer(
        unit, &constants,
        [&](const std::string &qualifier) {
          return readSource(*file, qualifier);
        },
        reader.version());
    c10::IValue root = readPickle("data", &importer);
    if (!root.isObject() || !root.toObject()->type()->is_module())
      fail("its data is no module");
    file->root = torch::jit::Module(root.toObject());
    if (!file->root.find_method("forward"))
      fail("its module has no method 'forward'");
    tensors.collect(file->root, file->held, file->paths);
    checkCode(*file);
    readTracedInputs(*file);
    for (const auto &[name, record] : archive.records())
      if (isBelow(name, "data/") || isBelow(name, "constants/"))
        file->recordBytes += static_cast<int64_t>(record.size);
    return file;
  }

  const std::string path;

private:
  [[noreturn]] void fail(std::string what) const {
    throw Refused({"MP1031", ExitCode::BadInput,
                   "no TorchScript file that can be read: " + std::move(what),
                   path, "save the model again with torch.jit.save"});
  }

  void checkRecords() const {
    for (const char *name : {"constants.pkl", "data.pkl"})
      if (archive.find(name) == nullptr)
        fail("this archive holds no TorchScript module");
    uint64_t code = 0;
    for (const auto &[name, record] : archive.records()) {
      if (record.isStored)
        continue;
      if (!isBelow(name, "code/") || record.size > CodeRecordLimitBytes)
        fail("record " + name + " is compressed or too large");
      code += record.size;
    }
    if (code > CodeLimitBytes)
      fail("its code is too large");
    for (const char *name : {"constants.pkl", "data.pkl"})
      if (auto bytes = archive.read(name); !bytes)
        throw Refused(bytes.error());
  }

  /// Storages over the mapped file: what a pickle says of their sizes is not
  /// believed.
  std::shared_ptr<DeserializationStorageContext>
  storagesOf(const std::string &folder) {
    auto context = std::make_shared<DeserializationStorageContext>();
    for (const auto &[name, record] : archive.records()) {
      if (!isBelow(name, folder + "/") || !record.isStored)
        continue;
      c10::Storage storage = mapped.storage(record);
      records[storage.unsafeGetStorageImpl()] = name;
      context->addStorage(name.substr(folder.size() + 1), std::move(storage));
    }
    return context;
  }

  c10::IValue readPickle(const std::string &name,
                         torch::jit::SourceImporter *importer) {
    std::optional<torch::jit::TypeResolver> types;
    std::optional<torch::jit::ObjLoader> objects;
    if (importer != nullptr) {
      types = [this, importer](const c10::QualifiedName &type) {
        if (isCustomClass(type.qualifiedName()))
          refuse("custom class " + type.qualifiedName());
        return c10::StrongTypePtr(unit, importer->loadType(type));
      };
      objects = [this](const c10::StrongTypePtr &type, c10::IValue state) {
        const auto object = type.type_->expect<c10::ClassType>();
        for (const char *method : {"__setstate__", "__getstate__"})
          if (object->findMethod(method) != nullptr)
            refuse(fmt::format("method {} of {}, which would run when the file "
                               "is opened",
                               method, object->repr_str()));
        return torch::jit::ObjLoaderFuncWithVersion(type, std::move(state),
                                                    reader.version());
      };
    }
    return torch::jit::readArchiveAndTensors(
        name, "", name + "/", std::move(types), std::move(objects),
        c10::Device(c10::kCPU), reader,
        torch::jit::Unpickler::defaultTypeParser,
        // Of the traced inputs only shapes are kept, and only they are read.
        name == "traced_inputs" ? nullptr : storagesOf(name));
  }

  [[noreturn]] void refuse(std::string what) const {
    throw Refused({"MP1030", ExitCode::BadInput,
                   "this TorchScript program uses what no model needs: " +
                       std::move(what),
                   path,
                   "remove it from the model, or export with torch.export"});
  }

  std::string readCode(const std::string &record) {
    const auto [data, size] = reader.getRecord(record);
    std::string text(static_cast<const char *>(data.get()), size);
    const ZipArchive::Record *known = archive.find(record);
    if (known == nullptr || crc32(text) != known->crc32)
      fail("record " + record + " fails its checksum");
    return text;
  }

  std::shared_ptr<torch::jit::Source> readSource(ScriptFile &file,
                                                 const std::string &qualifier) {
    std::string name = "code/" + qualifier + ".py";
    std::replace(name.begin() + 5, name.end() - 3, '.', '/');
    if (!reader.hasRecord(name))
      return nullptr;
    std::string text = readCode(name);
    if (isCustomClass(text))
      refuse("custom classes (torch.classes) in " + name);
    const std::string debug = name + ".debug_pkl";
    if (reader.hasRecord(debug))
      file.lines[name] = readSourceLines(readCode(debug));
    return std::make_shared<torch::jit::Source>(std::move(text), name,
                                                /*starting_line_no=*/1);
  }

  void checkCode(ScriptFile &file) const {
    std::vector<Error> refused;
    size_t more = 0;
    for (torch::jit::Function *function : unit->get_functions()) {
      auto *graph = torch::jit::tryToGraphFunction(*function);
      if (graph == nullptr)
        refuse("function " + function->qualname().qualifiedName());
      eachNode(*graph->graph()->block(), [&](const torch::jit::Node &node) {
        ++file.nodes;
        const std::string what = refusalOf(node);
        if (what.empty())
          return;
        if (refused.size() == ListedRefusals)
          return void(++more);
        refused.push_back(
            {"MP1030", ExitCode::BadInput,
             "this TorchScript program uses what no model needs: " + what,
             originText(path, file.sourceOf(node)),
             "remove it from the model, or export with torch.export"});
      });
    }
    if (refused.empty())
      return;
    Error error = joined(refused);
    if (more > 0)
      error.what += fmt::format("\n  and {} more", more);
    throw Refused(std::move(error));
  }

  /// torch.jit.trace keeps the shapes and types that it ran with.
  void readTracedInputs(ScriptFile &file) {
    if (archive.find("traced_inputs.pkl") == nullptr)
      return;
    const c10::IValue saved = readPickle("traced_inputs", nullptr);
    for (const auto &entry : saved.toGenericDict()) {
      if (entry.key().toStringRef() != "forward")
        continue;
      for (const c10::IValue &input : entry.value().toListRef()) {
        const auto type = input.isTensor()
                              ? dtypeOfTensor(input.toTensor().scalar_type())
                              : std::nullopt;
        if (!type)
          return file.traced.clear();
        file.traced.push_back({*type, input.toTensor().sizes().vec()});
      }
    }
  }

  ZipArchive archive;
  MappedRecords mapped;
  caffe2::serialize::PyTorchStreamReader reader;
  std::shared_ptr<torch::jit::CompilationUnit> unit;
  std::vector<c10::IValue> constants;
  StorageRecords records;
};

Expected<std::shared_ptr<const ScriptFile>>
ScriptFile::open(const std::string &path) {
  auto archive = ZipArchive::open(path);
  if (!archive)
    return archive.error();
  auto mapped = MappedRecords::open(path);
  if (!mapped)
    return mapped.error();
  const auto unreadable = [&](std::string what) {
    return Error{"MP1031", ExitCode::BadInput,
                 "LibTorch cannot read this TorchScript file: " +
                     std::move(what),
                 path, "save the model again with torch.jit.save"};
  };
  try {
    return ScriptLoader(path, std::move(*archive), std::move(*mapped)).load();
  } catch (const Refused &refused) {
    return refused.error;
  } catch (const ScriptTensorError &refused) {
    return refused.error;
  } catch (const c10::Error &error) {
    return unreadable(firstLineOf(error.what_without_backtrace()));
  } catch (const std::exception &error) {
    return unreadable(firstLineOf(error.what()));
  }
}

} // namespace monarch
