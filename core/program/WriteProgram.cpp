//===- WriteProgram.cpp - a program as files ------------------------------===//
//
// A manifest and one file per role, named in it with digest and size. Fields
// with their default value are left out of instructions: most have a name,
// operands, results and arguments only.
//
//===----------------------------------------------------------------------===//
#include "core/program/ProgramFormat.h"
#include "core/support/Files.h"
#include "core/support/Sha256.h"

#include <fmt/format.h>

namespace monarch {

namespace {

/// Each element through `write`; an empty array, not null, of nothing.
template <typename List, typename Write>
Json arrayOf(const List &list, Write write) {
  Json array = Json::array();
  for (const auto &element : list)
    array.push_back(write(element));
  return array;
}

Json jsonOfExprs(const std::vector<Expr> &exprs) {
  return arrayOf(exprs, jsonOfExpr);
}

/// A plain dim is its size; else [size, [[begin, end, [factors]], ...]].
Json jsonOfDim(const DimStructure &dim) {
  if (dim == plainDim(dim.size))
    return dim.size;
  return {dim.size, arrayOf(dim.sections, [](const Section &section) {
            return Json::array({section.begin, section.end, section.factors});
          })};
}

Json jsonOfStructure(const TensorStructure &structure) {
  return arrayOf(structure, jsonOfDim);
}

/// "R", "P" or [dim, [factor per section]] by axis; the order of the axes.
Json jsonOfLayout(const Layout &layout) {
  Json states = arrayOf(layout.states, [](const AxisState &state) -> Json {
    if (state.isSplit())
      return Json::array({state.dim, state.factors});
    return state.isPartial() ? "P" : "R";
  });
  return {{"states", states}, {"order", layout.order}};
}

Json jsonOfStorage(const Storage &storage) {
  return {{"record", storage.record},
          {"offset", storage.offsetBytes},
          {"strides", storage.strides}};
}

/// Integers and lists of integers are bare, the rest is told apart by a key.
struct ArgWriter {
  Json operator()(std::monostate) const { return nullptr; }
  Json operator()(const OperandArg &arg) const {
    return {{"operand", arg.index}};
  }
  Json operator()(const OperandListArg &arg) const {
    return {{"operands", arg.indices}};
  }
  Json operator()(bool arg) const { return arg; }
  Json operator()(const Expr &arg) const { return jsonOfExpr(arg); }
  Json operator()(double arg) const { return {{"real", jsonOfReal(arg)}}; }
  Json operator()(const std::string &arg) const { return {{"text", arg}}; }
  Json operator()(const std::vector<Expr> &arg) const {
    return jsonOfExprs(arg);
  }
  Json operator()(const std::vector<double> &arg) const {
    return {{"reals", arrayOf(arg, jsonOfReal)}};
  }
  Json operator()(const std::vector<bool> &arg) const {
    return {{"booleans", arrayOf(arg, [](bool element) { return element; })}};
  }
  Json operator()(DType arg) const { return {{"type", toString(arg)}}; }
};

Json jsonOfInstruction(const Instruction &instruction) {
  static const Instruction Default;
  Json json = {{"do", toString(instruction.kind)}};
  auto add = [&](const char *key, const auto &value, const auto &standard,
                 auto write) {
    if (value != standard)
      json[key] = write(value);
  };
  auto plain = [](const auto &value) { return Json(value); };
  add("name", instruction.name, Default.name, plain);
  add("in", instruction.operands, Default.operands, plain);
  add("out", instruction.results, Default.results, plain);
  if (!instruction.args.empty())
    json["args"] = arrayOf(instruction.args, [](const CallArg &arg) {
      return std::visit(ArgWriter(), arg);
    });
  add("axes", instruction.axes, Default.axes, plain);
  add("send", instruction.sendSizes, Default.sendSizes, jsonOfExprs);
  add("receive", instruction.receiveSizes, Default.receiveSizes, jsonOfExprs);
  add("peer", instruction.peerStage, Default.peerStage, plain);
  add("tag", instruction.tag, Default.tag, plain);
  add("op", instruction.op, Default.op, plain);
  return json;
}

Json jsonOfValue(const ProgramValue &value) {
  return Json::array({toString(value.type), jsonOfExprs(value.shape),
                      toString(value.lifetime), value.aliasOf, value.name});
}

Json jsonOfShard(const Shard &shard) {
  return Json::array(
      {jsonOfDim(shard.structure), arrayOf(shard.cuts, [](const auto &cut) {
         return Json::array({cut.axis, cut.factors});
       })});
}

Json jsonOfParameter(const ProgramParameter &parameter) {
  Json json = {{"value", parameter.value},
               {"names", parameter.names},
               {"storage", jsonOfStorage(parameter.storage)},
               {"structure", jsonOfStructure(parameter.structure)},
               {"layout", jsonOfLayout(parameter.layout)},
               {"trainable", parameter.trainable},
               {"owner", parameter.owner},
               {"gradient", parameter.gradient}};
  if (parameter.master != None)
    json["master"] = parameter.master;
  return json;
}

Json jsonOfBuffer(const ProgramBuffer &buffer) {
  return {{"value", buffer.value},
          {"names", buffer.names},
          {"storage", jsonOfStorage(buffer.storage)},
          {"structure", jsonOfStructure(buffer.structure)},
          {"constant", buffer.constant}};
}

Json jsonOfInput(const ProgramInput &input) {
  return {{"value", input.value},
          {"name", input.name},
          {"structure", jsonOfStructure(input.structure)},
          {"layout", jsonOfLayout(input.layout)},
          {"row_dim", input.rowDim},
          {"bound", input.bound}};
}

Json jsonOfIndex(const ProgramIndex &index) {
  return {{"value", index.value},
          {"of", arrayOf(index.list.of, textOf)},
          {"in", arrayOf(index.list.in, textOf)}};
}

Json jsonOfRole(const Role &role) {
  Json json = {{"schema", ProgramSchema}, {"stage", role.stage}};
  json["values"] = arrayOf(role.values, jsonOfValue);
  json["shards"] = arrayOf(role.shards, jsonOfShard);
  json["parameters"] = arrayOf(role.parameters, jsonOfParameter);
  json["buffers"] = arrayOf(role.buffers, jsonOfBuffer);
  json["inputs"] = arrayOf(role.inputs, jsonOfInput);
  json["indices"] = arrayOf(role.indices, jsonOfIndex);
  json["zeroed"] = role.zeroed;
  json["scalars"] = {{"random", role.scalars.random},
                     {"loss", role.scalars.loss},
                     {"squared_norm", role.scalars.squaredNorm},
                     {"seed", role.scalars.seed}};
  json["segments"] = arrayOf(role.segments, [](const Segment &segment) {
    return Json{
        {"kind", toString(segment.kind)},
        {"instructions", arrayOf(segment.instructions, jsonOfInstruction)}};
  });
  json["schedule"] = arrayOf(role.schedule, [](const Slot &slot) {
    return Json::array({toString(slot.segment), slot.unit});
  });
  json["origins"] = arrayOf(role.origins, [](const ProgramOrigin &origin) {
    return Json::array({origin.op, origin.module, origin.source});
  });
  return json;
}

Json jsonOfTraffic(const Traffic &traffic, int64_t peakBytes) {
  Json bytes = Json::object(), collectives = Json::object();
  for (const auto &[kind, count] : traffic.bytes)
    bytes[kind] = count;
  for (const auto &[kind, count] : traffic.collectives)
    collectives[kind] = count;
  return {{"bytes", bytes},
          {"collectives", collectives},
          {"peak_tensor_bytes", peakBytes}};
}

Json manifestOf(const Program &program,
                const std::map<std::string, std::string> &roles) {
  Json json = {{"schema", ProgramSchema},
               {"model", program.modelDigest},
               {"plan", program.planDigest}};
  json["mesh"] = arrayOf(program.mesh.axes, [](const MeshAxis &axis) {
    return Json{{"name", axis.name},
                {"size", axis.size},
                {"role", toString(axis.role)}};
  });
  json["tables"] = arrayOf(program.tables.exceptions(), [](const auto &table) {
    return Json{{"extent", table.first.first},
                {"parts", table.first.second},
                {"offsets", table.second}};
  });
  json["optimizer"] = toString(program.optimizer);
  json["global_rows"] = program.globalRows;
  json["unit_rows"] = program.unitRows;
  json["units_per_replica"] = program.unitsPerReplica;
  json["predicted"] =
      jsonOfTraffic(program.predicted, program.predictedPeakBytes);
  Json entries = Json::array();
  for (size_t stage = 0; stage < program.roles.size(); ++stage) {
    const std::string &text = roles.at(roleFile(stage));
    entries.push_back({{"stage", stage},
                       {"file", roleFile(stage)},
                       {"sha256", sha256(text)},
                       {"bytes", text.size()}});
  }
  json["roles"] = entries;
  return json;
}

} // namespace

bool isProgramFile(const std::string &name) {
  return name == ManifestFile ||
         (name.rfind("role-", 0) == 0 && name.ends_with(".json"));
}

std::string roleFile(size_t stage) {
  return fmt::format("role-{}.json", stage);
}

std::map<std::string, std::string> filesOf(const Program &program) {
  std::map<std::string, std::string> files;
  for (size_t stage = 0; stage < program.roles.size(); ++stage)
    files[roleFile(stage)] = writeJson(jsonOfRole(program.roles[stage]));
  files[std::string(ManifestFile)] = writeJson(manifestOf(program, files));
  return files;
}

std::optional<Error> writeProgram(const Program &program,
                                  const std::string &directory) {
  return writeDirectory(directory, filesOf(program), isProgramFile);
}

} // namespace monarch
