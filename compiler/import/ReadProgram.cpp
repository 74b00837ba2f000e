//===- ReadProgram.cpp - the JSON of torch.export -------------------------===//
//
// Schema 8 of torch/_export/serde. Unions are objects with one key. Fields that
// are not needed are not looked at, so minor versions may add some. Weights are
// found by two tables, FQN -> record, one for weights and one for constants.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/ReadProgram.h"
#include "core/support/Json.h"

#include <fmt/format.h>

#include <limits>

namespace monarch {

namespace {

DType readType(const JsonValue &json) {
  if (auto type = dtypeOfExport(json.integer()))
    return *type;
  json.fail("an element type that is not supported");
  return DType::Float32;
}

/// Names in "Mul(Integer(8), Symbol('s43', positive=True, integer=True))".
std::vector<std::string> symbolsOf(const std::string &expression) {
  const std::string opening = "Symbol('";
  std::vector<std::string> names;
  for (size_t at = expression.find(opening); at != std::string::npos;
       at = expression.find(opening, at + 1)) {
    size_t begin = at + opening.size();
    names.push_back(
        expression.substr(begin, expression.find('\'', begin) - begin));
  }
  return names;
}

ExportedSize readSize(const JsonValue &json) {
  ExportedSize size;
  if (auto constant = json.find("as_int")) {
    size.hint = constant->integer();
    return size;
  }
  JsonValue expression = json["as_expr"];
  size.expression = expression["expr_str"].string();
  size.symbols = symbolsOf(size.expression);
  if (size.symbols.empty())
    expression.fail("a size that is no number and has no symbol");
  auto hint = expression.find("hint");
  if (hint && !hint->isNull())
    size.hint = (*hint)["as_int"].integer();
  return size;
}

ExportedTensor readTensor(const JsonValue &json) {
  ExportedTensor tensor;
  tensor.type = readType(json["dtype"]);
  for (const JsonValue &size : json["sizes"].elements())
    tensor.sizes.push_back(readSize(size));
  tensor.requiresGrad = json["requires_grad"].boolean();
  return tensor;
}

/// JSON has no infinities: torch writes them as strings.
double readDouble(const JsonValue &json) {
  if (!json.isString())
    return json.number();
  const std::string text = json.string();
  if (text == "NaN")
    return std::numeric_limits<double>::quiet_NaN();
  if (text != "Infinity" && text != "-Infinity")
    json.fail("not a number");
  double infinity = std::numeric_limits<double>::infinity();
  return text == "Infinity" ? infinity : -infinity;
}

ExportedGraph readGraphBody(const JsonValue &json);

/// as_sym_int, as_sym_float, as_sym_bool: a name, or a plain value.
ExportedArgument readSymbolic(const JsonValue &json) {
  if (auto name = json.find("as_name"))
    return SymbolName{name->string()};
  if (auto value = json.find("as_int"))
    return value->integer();
  if (auto value = json.find("as_bool"))
    return value->boolean();
  return readDouble(json["as_float"]);
}

std::vector<TensorName> readOptionalTensors(const JsonValue &json) {
  std::vector<TensorName> list;
  for (const JsonValue &element : json.elements()) {
    auto tensor = element.find("as_tensor");
    list.push_back({tensor ? (*tensor)["name"].string() : ""});
  }
  return list;
}

std::vector<TensorName> readTensors(const JsonValue &json) {
  std::vector<TensorName> list;
  for (const JsonValue &element : json.elements())
    list.push_back({element["name"].string()});
  return list;
}

ExportedArgument readInts(const JsonValue &json) {
  std::vector<ExportedInt> list;
  for (const JsonValue &element : json.elements()) {
    if (element.isInteger()) {
      list.push_back(element.integer());
    } else if (auto name = element.find("as_name")) {
      list.push_back(SymbolName{name->string()});
    } else {
      list.push_back(element["as_int"].integer());
    }
  }
  return list;
}

ExportedArgument readMemoryFormat(const JsonValue &json) {
  switch (json.integer(1, 4)) {
  case 2:
    return MemoryFormat::ChannelsLast;
  case 3:
    return MemoryFormat::ChannelsLast3d;
  case 4:
    return MemoryFormat::Preserve;
  default:
    return MemoryFormat::Contiguous;
  }
}

ExportedArgument readArgument(const JsonValue &json) {
  auto fields = json.fields();
  if (fields.size() != 1) {
    json.fail("not a union");
    return {};
  }
  const auto &[tag, value] = fields.front();
  if (tag == "as_none")
    return std::monostate{};
  if (tag == "as_tensor")
    return TensorName{value["name"].string()};
  if (tag == "as_tensors")
    return readTensors(value);
  if (tag == "as_optional_tensor") {
    auto tensor = value.find("as_tensor");
    return TensorName{tensor ? (*tensor)["name"].string() : ""};
  }
  if (tag == "as_optional_tensors")
    return readOptionalTensors(value);
  if (tag == "as_int")
    return value.integer();
  if (tag == "as_float")
    return readDouble(value);
  if (tag == "as_bool")
    return value.boolean();
  if (tag == "as_string")
    return value.string();
  if (tag == "as_ints" || tag == "as_sym_ints")
    return readInts(value);
  if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool")
    return readSymbolic(value);
  if (tag == "as_scalar_type")
    return readType(value);
  if (tag == "as_memory_format")
    return readMemoryFormat(value);
  if (tag == "as_device")
    return DeviceArgument{};
  if (tag == "as_layout")
    return LayoutArgument{};
  if (tag == "as_graph")
    return std::make_shared<ExportedGraph>(readGraphBody(value["graph"]));
  if (tag == "as_floats") {
    std::vector<double> list;
    for (const JsonValue &element : value.elements())
      list.push_back(readDouble(element));
    return list;
  }
  if (tag == "as_bools") {
    std::vector<bool> list;
    for (const JsonValue &element : value.elements())
      list.push_back(element.boolean());
    return list;
  }
  value.fail("an argument of kind " + tag + " is not supported");
  return {};
}

/// The path of the innermost module of "key,path,type;key,path,type"; commas
/// and semicolons may stand inside brackets.
std::string modulePath(const std::string &stack) {
  std::vector<std::string> fields = {""};
  int depth = 0;
  for (char c : stack) {
    depth += (c == '[' || c == '(') - (c == ']' || c == ')');
    if (c == ';' && depth == 0)
      fields = {""};
    else if (c == ',' && depth == 0)
      fields.emplace_back();
    else
      fields.back() += c;
  }
  std::string path = fields.size() > 1 ? fields[1] : "";
  return path.find("_empty_nn_module_stack") == std::string::npos ? path : "";
}

/// "model.py:12" of the innermost frame: File "/a/model.py", line 12, in f.
/// Frames of text that was compiled in memory ("<eval_with_key>.5") are none.
std::string sourceLine(const std::string &trace) {
  const std::string opening = "File \"", middle = "\", line ";
  size_t begin = trace.rfind(opening);
  while (begin != std::string::npos && begin != 0 &&
         trace.compare(begin + opening.size(), 1, "<") == 0)
    begin = trace.rfind(opening, begin - 1);
  if (begin == std::string::npos)
    return "";
  begin += opening.size();
  size_t end = trace.find(middle, begin);
  if (end == std::string::npos)
    return "";
  std::string file = trace.substr(begin, end - begin);
  size_t digits = end + middle.size();
  size_t stop = trace.find_first_not_of("0123456789", digits);
  return file.substr(file.find_last_of('/') + 1) + ":" +
         trace.substr(digits, stop == std::string::npos ? stop : stop - digits);
}

ExportedNode readNode(const JsonValue &json) {
  ExportedNode node;
  node.target = json["target"].string();
  for (const JsonValue &input : json["inputs"].elements())
    node.inputs.emplace_back(input["name"].string(),
                             readArgument(input["arg"]));
  for (const JsonValue &output : json["outputs"].elements())
    node.outputs.push_back(readArgument(output));
  JsonValue metadata = json["metadata"];
  if (auto stack = metadata.find("nn_module_stack"))
    node.module = modulePath(stack->string());
  if (auto trace = metadata.find("stack_trace"))
    node.source = sourceLine(trace->string());
  return node;
}

ExportedGraph readGraphBody(const JsonValue &json) {
  ExportedGraph graph;
  for (const JsonValue &input : json["inputs"].elements())
    graph.inputs.push_back(readArgument(input));
  for (const JsonValue &output : json["outputs"].elements())
    graph.outputs.push_back(readArgument(output));
  for (const JsonValue &node : json["nodes"].elements())
    graph.nodes.push_back(readNode(node));
  for (const auto &[name, tensor] : json["tensor_values"].fields())
    graph.tensors.emplace(name, readTensor(tensor));
  return graph;
}

/// FQN -> where its bytes lie.
using StorageTable = std::map<std::string, Storage>;

Expected<StorageTable> readStorage(const ModelArchive &model,
                                   const std::string &folder) {
  StorageTable table;
  const std::string name =
      fmt::format("data/{0}/{1}_{0}_config.json", folder, model.model);
  if (!model.archive.find(name))
    return table;
  auto text = model.archive.read(name);
  if (!text)
    return text.error();
  auto json = parseJson(*text, model.archive.path() + ": " + name);
  if (!json)
    return json.error();
  JsonDocument document{*json, model.archive.path() + ": " + name, "MP1007"};
  document.fix = "export the model again";
  for (const auto &[fqn, entry] : JsonValue(document)["config"].fields()) {
    JsonValue meta = entry["tensor_meta"];
    if (entry["use_pickle"].boolean())
      entry.fail("a pickled tensor, which is not opened");
    Storage storage;
    storage.record = "data/" + folder + "/" + entry["path_name"].string();
    const auto type = readType(meta["dtype"]);
    storage.offsetBytes =
        readSize(meta["storage_offset"]).hint * byteWidth(type);
    for (const JsonValue &stride : meta["strides"].elements())
      storage.strides.push_back(readSize(stride).hint);
    const auto *record = model.archive.find(storage.record);
    if (document.error)
      break;
    if (record == nullptr)
      entry.fail("record " + storage.record + " is missing");
    else if (record->size == 0)
      storage.record.clear(); // exported without weights
    table.emplace(fqn, std::move(storage));
  }
  if (document.error)
    return *document.error;
  return table;
}

class ProgramReader {
public:
  ProgramReader(const StorageTable &weights, const StorageTable &constants)
      : weights(weights), constants(constants) {}

  ExportedProgram read(const JsonValue &json) {
    JsonValue version = json["schema_version"];
    if (version["major"].integer() != 8)
      version.fail("only schema 8 is read: export with torch 2.11 or later");
    JsonValue module = json["graph_module"];
    program.graph = readGraphBody(module["graph"]);
    JsonValue signature = module["signature"];
    for (const JsonValue &spec : signature["input_specs"].elements())
      readInput(spec);
    readOutputs(signature["output_specs"]);
    program.outputNames.resize(program.graph.outputs.size());
    if (!program.isJoint() && program.bufferResults.empty())
      program.outputNames = readOutputNames(module);
    if (auto guards = json.find("guards_code"); guards && guards->isArray())
      for (const JsonValue &guard : guards->elements())
        if (guard.isString())
          program.guards.push_back(guard.string());
    return std::move(program);
  }

private:
  /// Keeps what the model gives to its caller as the graph's outputs.
  void readOutputs(const JsonValue &specs) {
    std::vector<ExportedArgument> kept;
    size_t index = 0;
    for (const JsonValue &spec : specs.elements()) {
      auto fields = spec.fields();
      if (fields.size() != 1 || index >= program.graph.outputs.size())
        return spec.fail("not an output of the graph");
      const auto &[kind, body] = fields.front();
      const ExportedArgument output = program.graph.outputs[index++];
      auto name = [&] { return body["arg"]["name"].string(); };
      if (kind == "user_output") {
        kept.push_back(output);
      } else if (kind == "loss_output") {
        program.jointLoss = name();
        kept.push_back(output);
      } else if (kind == "gradient_to_parameter") {
        program.gradients[body["parameter_name"].string()] = name();
      } else if (kind == "buffer_mutation") {
        program.bufferResults[body["buffer_name"].string()] = name();
      } else if (kind != "gradient_to_user_input") {
        return spec.fail("an output of kind " + kind +
                         " is not supported: save the program as "
                         "torch.export.export returned it");
      }
    }
    program.graph.outputs = std::move(kept);
  }

  void readInput(const JsonValue &spec) {
    auto fields = spec.fields();
    if (fields.size() != 1)
      return spec.fail("not a union");
    const auto &[kind, body] = fields.front();
    if (kind == "constant_input")
      return;
    if (kind == "user_input") {
      auto tensor = body["arg"].find("as_tensor");
      if (!tensor) {
        if (!body["arg"].find("as_none"))
          body.fail("an input that is no tensor");
        return;
      }
      std::string name = (*tensor)["name"].string();
      addLeaf(spec, ValueKind::Input, name, name, {});
    } else if (kind == "parameter") {
      const std::string fqn = body["parameter_name"].string();
      addLeaf(spec, ValueKind::Parameter, fqn, body["arg"]["name"].string(),
              storageOf(weights, fqn));
    } else if (kind == "buffer") {
      const std::string fqn = body["buffer_name"].string();
      bool isPersistent = body["persistent"].boolean();
      addLeaf(spec, ValueKind::Buffer, fqn, body["arg"]["name"].string(),
              storageOf(isPersistent ? weights : constants, fqn));
      if (!program.leaves.empty())
        program.leaves.back().persistent = isPersistent;
    } else if (kind == "tensor_constant") {
      const std::string fqn = body["tensor_constant_name"].string();
      addLeaf(spec, ValueKind::Constant, fqn, body["arg"]["name"].string(),
              storageOf(constants, fqn));
    } else {
      spec.fail("an input of kind " + kind + " is not supported");
    }
  }

  static Storage storageOf(const StorageTable &table, const std::string &fqn) {
    auto found = table.find(fqn);
    return found == table.end() ? Storage{} : found->second;
  }

  /// Tied parameters become one leaf: same storage, offset, sizes and strides.
  /// A leaf without bytes in the file is never tied.
  void addLeaf(const JsonValue &spec, ValueKind kind, const std::string &name,
               const std::string &placeholder, Storage storage) {
    auto tensor = program.graph.tensors.find(placeholder);
    if (tensor == program.graph.tensors.end())
      return spec.fail("'" + placeholder + "' has no type");
    if (kind == ValueKind::Parameter && !storage.record.empty())
      for (ExportedLeaf &leaf : program.leaves) {
        if (leaf.kind != kind || leaf.storage.record != storage.record)
          continue;
        const ExportedTensor &other =
            program.graph.tensors.at(leaf.placeholders[0]);
        if (leaf.storage.offsetBytes == storage.offsetBytes &&
            leaf.storage.strides == storage.strides &&
            other.sizes == tensor->second.sizes) {
          leaf.names.push_back(name);
          leaf.placeholders.push_back(placeholder);
          return;
        }
        // Training one would change a part of the other.
        const int64_t end = denseEnd(storage, tensor->second);
        const int64_t otherEnd = denseEnd(leaf.storage, other);
        if (storage.offsetBytes < otherEnd && leaf.storage.offsetBytes < end)
          return spec.fail("parameters " + leaf.names[0] + " and " + name +
                           " share part of their memory");
      }
    ExportedLeaf leaf;
    leaf.kind = kind;
    leaf.names = {name};
    leaf.placeholders = {placeholder};
    leaf.trainable =
        kind == ValueKind::Parameter && tensor->second.requiresGrad;
    leaf.storage = std::move(storage);
    program.leaves.push_back(std::move(leaf));
  }

  /// Where a tensor without gaps ends in its record; its start for others,
  /// whose gaps may hold another parameter.
  static int64_t denseEnd(const Storage &storage,
                          const ExportedTensor &tensor) {
    int64_t count = 1;
    for (size_t dim = tensor.sizes.size(); dim-- > 0;) {
      if (dim >= storage.strides.size() || storage.strides[dim] != count)
        return storage.offsetBytes;
      if (__builtin_mul_overflow(count, tensor.sizes[dim].hint, &count))
        return storage.offsetBytes;
    }
    return storage.offsetBytes + count * byteWidth(tensor.type);
  }

  /// Keys of the mapping that the model returns; "" for tuples and tensors.
  std::vector<std::string> readOutputNames(const JsonValue &module) const {
    const size_t count = program.graph.outputs.size();
    const std::vector<std::string> unnamed(count);
    auto calls = module["module_call_graph"].elements();
    if (calls.empty())
      return unnamed;
    auto signature = calls.front().find("signature");
    if (!signature || signature->isNull())
      return unnamed;
    // Two texts of JSON, one inside the other; any other shape has no names.
    const auto spec = Json::parse((*signature)["out_spec"].string(), nullptr,
                                  /*allow_exceptions=*/false);
    if (!spec.is_array() || spec.size() != 2 || !spec[1].is_object() ||
        !spec[1].contains("context") || !spec[1]["context"].is_string())
      return unnamed;
    const auto keys = Json::parse(spec[1]["context"].get<std::string>(),
                                  nullptr, /*allow_exceptions=*/false);
    if (!keys.is_array() || keys.size() != count)
      return unnamed;
    std::vector<std::string> names;
    for (const auto &key : keys)
      names.push_back(key.is_string() ? key.get<std::string>() : "");
    return names;
  }

  const StorageTable &weights;
  const StorageTable &constants;
  ExportedProgram program;
};

} // namespace

Expected<ExportedProgram> readProgram(const ModelArchive &model,
                                      FileFacts *facts) {
  const std::string name = "models/" + model.model + ".json";
  const std::string where = model.archive.path() + ": " + name;
  auto text = model.archive.read(name);
  if (!text)
    return text.error();
  auto weights = readStorage(model, "weights");
  if (!weights)
    return weights.error();
  auto constants = readStorage(model, "constants");
  if (!constants)
    return constants.error();
  auto json = parseJson(*text, where);
  if (!json)
    return json.error();
  JsonDocument document{*json, where, "MP1007"};
  document.fix = "export the model again with torch 2.11 or later";
  ExportedProgram program =
      ProgramReader(*weights, *constants).read(JsonValue(document));
  if (facts != nullptr && !document.error)
    *facts = factsOf(model, program, JsonValue(document));
  if (document.error)
    return *document.error;
  return program;
}

} // namespace monarch
