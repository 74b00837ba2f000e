//===- ReadProgram.cpp - a program from its manifest and role files -------===//
//
// Digests first, then fields; unknown fields and other majors are refused, and
// so is text that the writer would not have written. Whether indices point into
// their tables is the verifier's matter.
//
//===----------------------------------------------------------------------===//
#include "core/program/ProgramFormat.h"
#include "core/support/Files.h"
#include "core/support/Sha256.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

namespace monarch {

namespace {

constexpr const char *Fix = "compile the plan again";

int32_t int32Of(JsonValue value) {
  return static_cast<int32_t>(
      value.integer(std::numeric_limits<int32_t>::min(),
                    std::numeric_limits<int32_t>::max()));
}

std::vector<int32_t> int32sOf(JsonValue value) {
  std::vector<int32_t> list;
  for (const JsonValue &element : value.elements())
    list.push_back(int32Of(element));
  return list;
}

template <typename Read> auto listOf(JsonValue value, Read read) {
  std::vector<decltype(read(value))> list;
  for (const JsonValue &element : value.elements())
    list.push_back(read(element));
  return list;
}

template <typename Enum> Enum enumeratorOf(JsonValue value) {
  std::string text = value.string();
  if (std::optional<Enum> parsed = parseEnumerator<Enum>(text))
    return *parsed;
  value.fail("unknown word \"" + text + "\"");
  return Enum();
}

DType typeOf(JsonValue value) {
  std::string text = value.string();
  if (std::optional<DType> type = parseDType(text))
    return *type;
  value.fail("unknown element type \"" + text + "\"");
  return DType::Float32;
}

Expr exprOf(JsonValue value) {
  if (value.isInteger())
    return Expr::constant(value.integer());
  std::string text = value.string();
  if (std::optional<Expr> expr = parseExpr(text))
    return *expr;
  value.fail("not an expression: \"" + text + "\"");
  return {};
}

std::vector<Expr> exprsOf(JsonValue value) { return listOf(value, exprOf); }

ShardRef shardRefOf(JsonValue value) {
  Expr expr = exprOf(value);
  if (expr.terms.size() == 1 && expr.terms[0].constant == 1 &&
      expr.terms[0].sizes.size() == 1)
    return expr.terms[0].sizes[0];
  value.fail("not a shard");
  return {};
}

DimStructure dimOf(JsonValue value) {
  if (value.isInteger())
    return plainDim(value.integer());
  std::vector<JsonValue> parts = value.elements(2);
  DimStructure dim;
  dim.size = parts[0].integer();
  dim.sections = listOf(parts[1], [](JsonValue element) {
    std::vector<JsonValue> fields = element.elements(3);
    return Section{fields[0].integer(), fields[1].integer(),
                   fields[2].integers()};
  });
  return dim;
}

TensorStructure structureOf(JsonValue value) { return listOf(value, dimOf); }

AxisState stateOf(JsonValue value) {
  if (value.isArray()) {
    std::vector<JsonValue> parts = value.elements(2);
    return AxisState::split(int32Of(parts[0]), int32sOf(parts[1]));
  }
  std::string text = value.string();
  if (text != "R" && text != "P")
    value.fail("unknown state \"" + text + "\"");
  return text == "P" ? AxisState::partial() : AxisState::replicated();
}

Layout layoutOf(JsonValue value) {
  value.refuseFieldsBeside({"states", "order"});
  return {listOf(value["states"], stateOf), int32sOf(value["order"])};
}

Storage storageOf(JsonValue value) {
  value.refuseFieldsBeside({"record", "offset", "strides"});
  return {value["record"].string(), value["offset"].integer(),
          value["strides"].integers()};
}

CallArg argOf(JsonValue value) {
  if (value.isNull())
    return std::monostate();
  if (value.isBoolean())
    return value.boolean();
  if (value.isInteger() || value.isString())
    return exprOf(value);
  if (value.isArray())
    return exprsOf(value);
  auto fields = value.fields();
  if (fields.size() != 1) {
    value.fail("not an argument");
    return std::monostate();
  }
  const auto &[key, content] = fields[0];
  if (key == "operand")
    return OperandArg{int32Of(content)};
  if (key == "operands")
    return OperandListArg{int32sOf(content)};
  if (key == "real")
    return content.real();
  if (key == "text")
    return content.string();
  if (key == "reals")
    return listOf(content, [](JsonValue element) { return element.real(); });
  if (key == "booleans")
    return listOf(content, [](JsonValue element) { return element.boolean(); });
  if (key == "type")
    return typeOf(content);
  value.fail("unknown sort of argument \"" + key + "\"");
  return std::monostate();
}

Instruction instructionOf(JsonValue value) {
  value.refuseFieldsBeside({"do", "name", "in", "out", "args", "axes", "send",
                            "receive", "peer", "tag", "op"});
  Instruction instruction;
  instruction.kind = enumeratorOf<InstructionKind>(value["do"]);
  auto read = [&](const char *key, auto &field, auto readField) {
    if (std::optional<JsonValue> content = value.find(key))
      field = readField(*content);
  };
  auto integer = [](JsonValue content) { return content.integer(); };
  auto string = [](JsonValue content) { return content.string(); };
  read("name", instruction.name, string);
  read("in", instruction.operands, int32sOf);
  read("out", instruction.results, int32sOf);
  read("args", instruction.args,
       [](JsonValue content) { return listOf(content, argOf); });
  read("axes", instruction.axes, int32sOf);
  read("send", instruction.sendSizes, exprsOf);
  read("receive", instruction.receiveSizes, exprsOf);
  read("peer", instruction.peerStage, int32Of);
  read("tag", instruction.tag, integer);
  read("op", instruction.op, int32Of);
  return instruction;
}

ProgramValue valueOf(JsonValue value) {
  std::vector<JsonValue> fields = value.elements(5);
  return {typeOf(fields[0]), exprsOf(fields[1]),
          enumeratorOf<Lifetime>(fields[2]), int32Of(fields[3]),
          fields[4].string()};
}

Shard shardOfJson(JsonValue value) {
  std::vector<JsonValue> fields = value.elements(2);
  return {dimOf(fields[0]), listOf(fields[1], [](JsonValue element) {
            std::vector<JsonValue> cut = element.elements(2);
            return Shard::Cut{int32Of(cut[0]), int32sOf(cut[1])};
          })};
}

ProgramParameter parameterOf(JsonValue value) {
  value.refuseFieldsBeside({"value", "names", "storage", "structure", "layout",
                            "trainable", "owner", "gradient", "master"});
  std::optional<JsonValue> master = value.find("master");
  return {int32Of(value["value"]),         value["names"].strings(),
          storageOf(value["storage"]),     structureOf(value["structure"]),
          layoutOf(value["layout"]),       value["trainable"].boolean(),
          value["owner"].boolean(),        int32Of(value["gradient"]),
          master ? int32Of(*master) : None};
}

ProgramBuffer bufferOf(JsonValue value) {
  value.refuseFieldsBeside(
      {"value", "names", "storage", "structure", "constant"});
  return {int32Of(value["value"]), value["names"].strings(),
          storageOf(value["storage"]), structureOf(value["structure"]),
          value["constant"].boolean()};
}

ProgramInput inputOf(JsonValue value) {
  value.refuseFieldsBeside(
      {"value", "name", "structure", "layout", "row_dim", "bound"});
  return {int32Of(value["value"]),         value["name"].string(),
          structureOf(value["structure"]), layoutOf(value["layout"]),
          int32Of(value["row_dim"]),       value["bound"].integer()};
}

ProgramIndex indexOf(JsonValue value) {
  value.refuseFieldsBeside({"value", "of", "in"});
  return {int32Of(value["value"]),
          {listOf(value["of"], shardRefOf), listOf(value["in"], shardRefOf)}};
}

Segment segmentOf(JsonValue value) {
  value.refuseFieldsBeside({"kind", "instructions"});
  return {enumeratorOf<SegmentKind>(value["kind"]),
          listOf(value["instructions"], instructionOf)};
}

ProgramOrigin originOf(JsonValue value) {
  std::vector<JsonValue> fields = value.elements(3);
  return {int32Of(fields[0]), fields[1].string(), fields[2].string()};
}

Slot slotOf(JsonValue value) {
  std::vector<JsonValue> fields = value.elements(2);
  return {enumeratorOf<SegmentKind>(fields[0]), fields[1].integer()};
}

std::map<std::string, int64_t> countsOf(JsonValue value) {
  std::map<std::string, int64_t> counts;
  for (const auto &[kind, count] : value.fields())
    counts[kind] = count.integer();
  return counts;
}

void checkSchema(JsonValue root) {
  std::string schema = root["schema"].string();
  if (schema != ProgramSchema)
    root.fail(
        fmt::format("schema \"{}\", this reads \"{}\"", schema, ProgramSchema));
}

struct RoleEntry {
  std::string file;
  std::string digest;
  int64_t bytes = 0;
};

Program manifestOfJson(JsonDocument &document, std::vector<RoleEntry> &roles) {
  JsonValue root(document);
  checkSchema(root);
  root.refuseFieldsBeside({"schema", "model", "plan", "mesh", "tables",
                           "optimizer", "global_rows", "unit_rows",
                           "units_per_replica", "predicted", "roles"});
  Program program;
  program.modelDigest = root["model"].string();
  program.planDigest = root["plan"].string();
  program.mesh.axes = listOf(root["mesh"], [](JsonValue axis) {
    axis.refuseFieldsBeside({"name", "size", "role"});
    return MeshAxis{axis["name"].string(), axis["size"].integer(1, 1 << 20),
                    enumeratorOf<AxisRole>(axis["role"])};
  });
  for (const JsonValue &table : root["tables"].elements()) {
    table.refuseFieldsBeside({"extent", "parts", "offsets"});
    int64_t extent = table["extent"].integer();
    int64_t parts = table["parts"].integer();
    std::vector<int64_t> offsets = table["offsets"].integers();
    if (parts < 1 || static_cast<int64_t>(offsets.size()) - 1 != parts ||
        offsets.front() != 0 || offsets.back() != extent ||
        !std::is_sorted(offsets.begin(), offsets.end()))
      table.fail("offsets do not rise from 0 to the extent");
    else
      program.tables.set(extent, parts, std::move(offsets));
  }
  program.optimizer = enumeratorOf<OptimizerKind>(root["optimizer"]);
  program.globalRows = root["global_rows"].integer();
  program.unitRows = root["unit_rows"].integer();
  program.unitsPerReplica = root["units_per_replica"].integer();
  JsonValue predicted = root["predicted"];
  predicted.refuseFieldsBeside({"bytes", "collectives", "peak_tensor_bytes"});
  program.predicted = {countsOf(predicted["bytes"]),
                       countsOf(predicted["collectives"])};
  program.predictedPeakBytes = predicted["peak_tensor_bytes"].integer();
  for (const JsonValue &entry : root["roles"].elements()) {
    entry.refuseFieldsBeside({"stage", "file", "sha256", "bytes"});
    // The file's name follows from the stage: a manifest cannot point outside.
    if (entry["stage"].integer() != static_cast<int64_t>(roles.size()))
      entry["stage"].fail("roles are listed by stage, from 0");
    if (entry["file"].string() != roleFile(roles.size()))
      entry["file"].fail("expected " + roleFile(roles.size()));
    roles.push_back({entry["file"].string(), entry["sha256"].string(),
                     entry["bytes"].integer()});
  }
  return program;
}

Error digestMismatch(const std::string &path) {
  return {"MP2102", ExitCode::Stale,
          "the file is not the one that the manifest names", path, Fix};
}

Error notCanonical(const std::string &path) {
  return {"MP2101", ExitCode::BadInput,
          "not in canonical form: it was edited or written by another tool",
          path, Fix};
}

} // namespace

Role roleOfJson(JsonDocument &document) {
  JsonValue root(document);
  checkSchema(root);
  root.refuseFieldsBeside({"schema", "stage", "values", "shards", "parameters",
                           "buffers", "inputs", "indices", "zeroed", "scalars",
                           "segments", "schedule", "origins"});
  Role role;
  role.stage = int32Of(root["stage"]);
  role.values = listOf(root["values"], valueOf);
  role.shards = listOf(root["shards"], shardOfJson);
  role.parameters = listOf(root["parameters"], parameterOf);
  role.buffers = listOf(root["buffers"], bufferOf);
  role.inputs = listOf(root["inputs"], inputOf);
  role.indices = listOf(root["indices"], indexOf);
  role.zeroed = int32sOf(root["zeroed"]);
  JsonValue scalars = root["scalars"];
  scalars.refuseFieldsBeside({"random", "loss", "squared_norm", "seed"});
  role.scalars = {int32Of(scalars["random"]), int32Of(scalars["loss"]),
                  int32Of(scalars["squared_norm"]), int32Of(scalars["seed"])};
  role.segments = listOf(root["segments"], segmentOf);
  role.schedule = listOf(root["schedule"], slotOf);
  role.origins = listOf(root["origins"], originOf);
  return role;
}

Expected<Program> readProgram(const std::string &directory) {
  std::map<std::string, std::string> texts;
  auto load = [&](const std::string &name) -> Expected<Json> {
    Expected<std::string> text = readFile(directory + "/" + name);
    if (!text)
      return text.error();
    texts[name] = std::move(*text);
    return parseJson(texts[name], directory + "/" + name);
  };
  auto document = [&](const Json &json, const std::string &name) {
    return JsonDocument{json, directory + "/" + name, "MP2101",
                        ExitCode::BadInput, Fix};
  };

  std::string manifestName(ManifestFile);
  Expected<Json> json = load(manifestName);
  if (!json)
    return json.error();
  JsonDocument manifest = document(*json, manifestName);
  std::vector<RoleEntry> entries;
  Program program = manifestOfJson(manifest, entries);
  if (manifest.error)
    return *manifest.error;

  for (const RoleEntry &entry : entries) {
    Expected<Json> roleJson = load(entry.file);
    const std::string &text = texts[entry.file];
    if (!text.empty() && (static_cast<int64_t>(text.size()) != entry.bytes ||
                          sha256(text) != entry.digest))
      return digestMismatch(directory + "/" + entry.file);
    if (!roleJson)
      return roleJson.error();
    JsonDocument role = document(*roleJson, entry.file);
    program.roles.push_back(roleOfJson(role));
    if (role.error)
      return *role.error;
  }
  for (const auto &[name, text] : filesOf(program))
    if (texts[name] != text)
      return notCanonical(directory + "/" + name);
  return program;
}

} // namespace monarch
