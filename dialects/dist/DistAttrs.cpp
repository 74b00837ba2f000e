//===- DistAttrs.cpp - attributes of dist as text -------------------------===//
//
// Each printer stands beside its parser. Expressions and enumerators are spelt
// as in program files.
//
//===----------------------------------------------------------------------===//
#include "core/program/ProgramFormat.h"
#include "dialects/dist/DistDialect.h"

#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace monarch;
using namespace monarch::dist;

using Delimiter = AsmParser::Delimiter;

//===- Helpers ------------------------------------------------------------===//

template <typename T>
static void printList(AsmPrinter &printer, const std::vector<T> &list) {
  printer << "[";
  llvm::interleaveComma(list, printer);
  printer << "]";
}

template <typename T>
static ParseResult parseList(AsmParser &parser, std::vector<T> &list) {
  return parser.parseCommaSeparatedList(Delimiter::Square, [&] {
    return parser.parseInteger(list.emplace_back());
  });
}

/// `<`, the body, `>`; the attribute of what it parsed.
template <typename AttrT, typename T, typename Body>
static Attribute parseBracketed(AsmParser &parser, T value, Body body) {
  if (parser.parseLess() || body(value) || parser.parseGreater())
    return {};
  return AttrT::get(parser.getContext(), value);
}

template <typename Enum>
static ParseResult parseEnum(AsmParser &parser, Enum &value) {
  StringRef keyword;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&keyword))
    return failure();
  if (std::optional<Enum> parsed = parseEnumerator<Enum>(keyword.str())) {
    value = *parsed;
    return success();
  }
  return parser.emitError(location, "unknown word '") << keyword << "'";
}

//===- Mesh and layout ----------------------------------------------------===//

void MeshAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getValue().axes, printer, [&](const MeshAxis &axis) {
    printer << llvm::StringRef(toString(axis.role)) << " ";
    printer.printString(axis.name);
    printer << " " << axis.size;
  });
  printer << ">";
}

Attribute MeshAttr::parse(AsmParser &parser, Type) {
  Mesh mesh;
  auto axis = [&]() -> ParseResult {
    MeshAxis &axis = mesh.axes.emplace_back();
    return failure(parseEnum(parser, axis.role) ||
                   parser.parseString(&axis.name) ||
                   parser.parseInteger(axis.size));
  };
  if (parser.parseCommaSeparatedList(Delimiter::LessGreater, axis))
    return {};
  return get(parser.getContext(), mesh);
}

/// The order that a layout has when nothing is said.
static std::vector<int> meshOrder(size_t axes) {
  return monarch::Layout::replicated(axes).order;
}

void LayoutAttr::print(AsmPrinter &printer) const {
  const Layout &layout = getValue();
  printer << "<" << (layout.states.empty() ? "none" : "");
  llvm::interleaveComma(layout.states, printer, [&](const AxisState &state) {
    if (state.isReplicated()) {
      printer << "R";
    } else if (state.isPartial()) {
      printer << "P";
    } else {
      printer << "S(" << state.dim << ":";
      llvm::interleaveComma(state.factors, printer);
      printer << ")";
    }
  });
  if (layout.order != meshOrder(layout.states.size())) {
    printer << " order ";
    printList(printer, layout.order);
  }
  printer << ">";
}

static ParseResult parseState(AsmParser &parser, AxisState &state) {
  StringRef keyword;
  if (parser.parseKeyword(&keyword))
    return failure();
  if (keyword == "R" || keyword == "P") {
    state = keyword == "R" ? AxisState::replicated() : AxisState::partial();
    return success();
  }
  if (keyword != "S")
    return parser.emitError(parser.getCurrentLocation(),
                            "an axis is R, P or S(dim:factors)");
  state.kind = AxisStateKind::Split;
  if (parser.parseLParen() || parser.parseInteger(state.dim) ||
      parser.parseColon())
    return failure();
  if (parser.parseCommaSeparatedList(Delimiter::None, [&] {
        return parser.parseInteger(state.factors.emplace_back());
      }))
    return failure();
  return parser.parseRParen();
}

Attribute LayoutAttr::parse(AsmParser &parser, Type) {
  auto body = [&](Layout &layout) -> ParseResult {
    // A mesh without axes has a layout without states.
    if (succeeded(parser.parseOptionalKeyword("none")))
      return success();
    if (parser.parseCommaSeparatedList(Delimiter::None, [&] {
          return parseState(parser, layout.states.emplace_back());
        }))
      return failure();
    layout.order = meshOrder(layout.states.size());
    if (failed(parser.parseOptionalKeyword("order")))
      return success();
    layout.order.clear();
    return parseList(parser, layout.order);
  };
  return parseBracketed<LayoutAttr>(parser, Layout(), body);
}

//===- Expressions --------------------------------------------------------===//

static void printSize(AsmPrinter &printer, const Expr &expr) {
  const Json json = jsonOfExpr(expr);
  if (json.is_string())
    printer.printString(json.get<std::string>());
  else
    printer << json.get<int64_t>();
}

static ParseResult parseSize(AsmParser &parser, Expr &expr) {
  int64_t constant = 0;
  OptionalParseResult isConstant = parser.parseOptionalInteger(constant);
  if (isConstant.has_value()) {
    expr = Expr::constant(constant);
    return *isConstant;
  }
  std::string text;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseString(&text))
    return failure();
  std::optional<Expr> parsed = monarch::parseExpr(text);
  if (!parsed)
    return parser.emitError(location, "'") << text << "' is no expression";
  expr = std::move(*parsed);
  return success();
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printSize(printer, getValue());
  printer << ">";
}

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  return parseBracketed<ExprAttr>(
      parser, Expr(), [&](Expr &expr) { return parseSize(parser, expr); });
}

void SizesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  llvm::interleaveComma(getValue(), printer,
                        [&](const Expr &expr) { printSize(printer, expr); });
  printer << ">";
}

Attribute SizesAttr::parse(AsmParser &parser, Type) {
  std::vector<Expr> sizes;
  if (parser.parseCommaSeparatedList(Delimiter::LessGreater, [&] {
        return parseSize(parser, sizes.emplace_back());
      }))
    return {};
  return get(parser.getContext(), sizes);
}

//===- Structure and shards -----------------------------------------------===//

static void printDim(AsmPrinter &printer, const DimStructure &dim) {
  printer << dim.size;
  if (dim == plainDim(dim.size))
    return;
  printer << " = ";
  llvm::interleaveComma(dim.sections, printer, [&](const Section &section) {
    printer << section.begin << " to " << section.end << " ";
    printList(printer, section.factors);
  });
}

static ParseResult parseDim(AsmParser &parser, DimStructure &dim) {
  if (parser.parseInteger(dim.size))
    return failure();
  if (failed(parser.parseOptionalEqual())) {
    dim = plainDim(dim.size);
    return success();
  }
  return parser.parseCommaSeparatedList(Delimiter::None, [&]() -> ParseResult {
    Section &section = dim.sections.emplace_back();
    return failure(
        parser.parseInteger(section.begin) || parser.parseKeyword("to") ||
        parser.parseInteger(section.end) || parseList(parser, section.factors));
  });
}

void DimAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printDim(printer, getValue());
  printer << ">";
}

Attribute DimAttr::parse(AsmParser &parser, Type) {
  return parseBracketed<DimAttr>(
      parser, DimStructure(),
      [&](DimStructure &dim) { return parseDim(parser, dim); });
}

void ShardAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printDim(printer, getValue().structure);
  if (!getValue().cuts.empty()) {
    printer << " by ";
    llvm::interleaveComma(getValue().cuts, printer, [&](const auto &cut) {
      printer << cut.axis << " ";
      printList(printer, cut.factors);
    });
  }
  printer << ">";
}

Attribute ShardAttr::parse(AsmParser &parser, Type) {
  return parseBracketed<ShardAttr>(
      parser, Shard(), [&](Shard &shard) -> ParseResult {
        if (parseDim(parser, shard.structure))
          return failure();
        if (failed(parser.parseOptionalKeyword("by")))
          return success();
        return parser.parseCommaSeparatedList(
            Delimiter::None, [&]() -> ParseResult {
              Shard::Cut &cut = shard.cuts.emplace_back();
              return failure(parser.parseInteger(cut.axis) ||
                             parseList(parser, cut.factors));
            });
      });
}

void TableAttr::print(AsmPrinter &printer) const {
  printer << "<" << getValue().extent << " in " << getValue().parts << " at ";
  printList(printer, getValue().offsets);
  printer << ">";
}

Attribute TableAttr::parse(AsmParser &parser, Type) {
  return parseBracketed<TableAttr>(
      parser, OffsetTable(), [&](OffsetTable &table) -> ParseResult {
        return failure(
            parser.parseInteger(table.extent) || parser.parseKeyword("in") ||
            parser.parseInteger(table.parts) || parser.parseKeyword("at") ||
            parseList(parser, table.offsets));
      });
}

//===- Slots and values ---------------------------------------------------===//

void SlotAttr::print(AsmPrinter &printer) const {
  printer << "<" << llvm::StringRef(toString(getValue().segment));
  if (getValue().unit != None)
    printer << " " << getValue().unit;
  printer << ">";
}

Attribute SlotAttr::parse(AsmParser &parser, Type) {
  return parseBracketed<SlotAttr>(
      parser, Slot(), [&](Slot &slot) -> ParseResult {
        if (parseEnum(parser, slot.segment))
          return failure();
        OptionalParseResult unit = parser.parseOptionalInteger(slot.unit);
        return unit.has_value() ? *unit : success();
      });
}

void ValueAttr::print(AsmPrinter &printer) const {
  const ValueInfo &info = getValue();
  printer << "<" << info.number;
  if (info.lifetime != Lifetime::Local)
    printer << " " << llvm::StringRef(toString(info.lifetime));
  if (!info.name.empty()) {
    printer << " ";
    printer.printString(info.name);
  }
  if (info.aliasOf != None)
    printer << " of " << info.aliasOf;
  printer << ">";
}

Attribute ValueAttr::parse(AsmParser &parser, Type) {
  return parseBracketed<ValueAttr>(
      parser, ValueInfo(), [&](ValueInfo &info) -> ParseResult {
        if (parser.parseInteger(info.number))
          return failure();
        StringRef keyword;
        if (succeeded(parser.parseOptionalKeyword(
                &keyword, {"persistent", "carried", "saved"})))
          info.lifetime = *parseEnumerator<Lifetime>(keyword.str());
        (void)parser.parseOptionalString(&info.name);
        if (succeeded(parser.parseOptionalKeyword("of")))
          return parser.parseInteger(info.aliasOf);
        return success();
      });
}
