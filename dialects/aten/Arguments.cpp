//===- Arguments.cpp - literals of calls as attributes --------------------===//

#include "dialects/aten/Arguments.h"
#include "dialects/aten/AtenDialect.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace monarch::aten {

Type elementType(DType type, MLIRContext *context) {
  switch (type) {
  case DType::Bool:
    return IntegerType::get(context, 1);
  case DType::UInt8:
    return IntegerType::get(context, 8, IntegerType::Unsigned);
  case DType::Int8:
    return IntegerType::get(context, 8);
  case DType::Int16:
    return IntegerType::get(context, 16);
  case DType::Int32:
    return IntegerType::get(context, 32);
  case DType::Int64:
    return IntegerType::get(context, 64);
  case DType::Float16:
    return Float16Type::get(context);
  case DType::BFloat16:
    return BFloat16Type::get(context);
  case DType::Float32:
    return Float32Type::get(context);
  case DType::Float64:
    return Float64Type::get(context);
  case DType::Float8E4M3:
    return Float8E4M3FNType::get(context);
  case DType::Float8E5M2:
    return Float8E5M2Type::get(context);
  case DType::Complex64:
    return ComplexType::get(Float32Type::get(context));
  case DType::Complex128:
    return ComplexType::get(Float64Type::get(context));
  }
  llvm_unreachable("all element types are listed");
}

std::optional<DType> dtypeOf(Type type) {
  for (int i = 0; i <= static_cast<int>(LastDType); ++i)
    if (elementType(static_cast<DType>(i), type.getContext()) == type)
      return static_cast<DType>(i);
  return std::nullopt;
}

//===- Arguments and attributes -------------------------------------------===//

namespace {

struct AttributeWriter {
  MLIRContext *context;

  Attribute operator()(std::monostate) const { return UnitAttr::get(context); }
  Attribute operator()(const OperandArg &arg) const {
    return OperandAttr::get(context, arg.index);
  }
  Attribute operator()(const OperandListArg &arg) const {
    return OperandsAttr::get(context, arg.indices);
  }
  Attribute operator()(bool arg) const { return BoolAttr::get(context, arg); }
  Attribute operator()(int64_t arg) const {
    return IntegerAttr::get(IntegerType::get(context, 64), arg);
  }
  Attribute operator()(double arg) const {
    return FloatAttr::get(Float64Type::get(context), arg);
  }
  Attribute operator()(const std::string &arg) const {
    return StringAttr::get(context, arg);
  }
  Attribute operator()(const std::vector<int64_t> &arg) const {
    return DenseI64ArrayAttr::get(context, arg);
  }
  Attribute operator()(const std::vector<double> &arg) const {
    return DenseF64ArrayAttr::get(context, arg);
  }
  Attribute operator()(const std::vector<bool> &arg) const {
    return DenseBoolArrayAttr::get(context,
                                   SmallVector<bool>(arg.begin(), arg.end()));
  }
  Attribute operator()(DType arg) const {
    return TypeAttr::get(elementType(arg, context));
  }
  Attribute operator()(const ResultSizes &arg) const {
    return SizesOfAttr::get(context, arg.result);
  }
  Attribute operator()(const ResultSize &arg) const {
    return SizeOfAttr::get(context, arg.result, arg.dim);
  }
  Attribute operator()(const ResultsSizes &arg) const {
    return SizesAlongAttr::get(context, arg.dim);
  }
};

} // namespace

Attribute attributeOf(const Arg &arg, MLIRContext *context) {
  return std::visit(AttributeWriter{context}, arg);
}

std::optional<Arg> argOf(Attribute attribute) {
  using Result = std::optional<Arg>;
  return llvm::TypeSwitch<Attribute, Result>(attribute)
      .Case([](UnitAttr) { return Arg(std::monostate()); })
      .Case([](OperandAttr attr) { return Arg(OperandArg{attr.getIndex()}); })
      .Case([](OperandsAttr attr) {
        return Arg(OperandListArg{attr.getIndices().vec()});
      })
      .Case([](BoolAttr attr) { return Arg(attr.getValue()); })
      .Case([](IntegerAttr attr) -> Result {
        if (!attr.getType().isSignlessInteger(64))
          return std::nullopt;
        return Arg(attr.getInt());
      })
      .Case([](FloatAttr attr) -> Result {
        if (!attr.getType().isF64())
          return std::nullopt;
        return Arg(attr.getValueAsDouble());
      })
      .Case([](StringAttr attr) { return Arg(attr.str()); })
      .Case([](DenseI64ArrayAttr attr) { return Arg(attr.asArrayRef().vec()); })
      .Case([](DenseF64ArrayAttr attr) { return Arg(attr.asArrayRef().vec()); })
      .Case([](DenseBoolArrayAttr attr) {
        ArrayRef<bool> values = attr.asArrayRef();
        return Arg(std::vector<bool>(values.begin(), values.end()));
      })
      .Case([](TypeAttr attr) -> Result {
        if (std::optional<DType> type = dtypeOf(attr.getValue()))
          return Arg(*type);
        return std::nullopt;
      })
      .Case([](SizesOfAttr attr) { return Arg(ResultSizes{attr.getResult()}); })
      .Case([](SizeOfAttr attr) {
        return Arg(ResultSize{attr.getResult(), attr.getDim()});
      })
      .Case(
          [](SizesAlongAttr attr) { return Arg(ResultsSizes{attr.getDim()}); })
      .Default([](Attribute) -> Result { return std::nullopt; });
}

//===- Text ---------------------------------------------------------------===//

static void printArgument(OpAsmPrinter &printer, Attribute argument) {
  llvm::TypeSwitch<Attribute>(argument)
      .Case([&](UnitAttr) { printer << "none"; })
      .Case([&](OperandAttr attr) { printer << "operand " << attr.getIndex(); })
      .Case([&](OperandsAttr attr) {
        printer << "operands [";
        llvm::interleaveComma(attr.getIndices(), printer, [&](int32_t index) {
          if (index == None)
            printer << "none";
          else
            printer << index;
        });
        printer << "]";
      })
      .Case(
          [&](SizesOfAttr attr) { printer << "sizes_of " << attr.getResult(); })
      .Case([&](SizeOfAttr attr) {
        printer << "size_of " << attr.getResult() << ":" << attr.getDim();
      })
      .Case([&](SizesAlongAttr attr) {
        printer << "sizes_along " << attr.getDim();
      })
      .Case([&](BoolAttr attr) { printer.printAttribute(attr); })
      .Case([&](IntegerAttr attr) {
        if (attr.getType().isSignlessInteger(64))
          printer.printAttributeWithoutType(attr);
        else
          printer.printAttribute(attr);
      })
      .Default([&](Attribute attr) { printer.printAttribute(attr); });
}

void printArguments(OpAsmPrinter &printer, Operation *, ArrayAttr arguments) {
  printer << "[";
  llvm::interleaveComma(arguments, printer, [&](Attribute argument) {
    printArgument(printer, argument);
  });
  printer << "]";
}

static ParseResult parseArgument(OpAsmParser &parser, Attribute &argument) {
  MLIRContext *context = parser.getContext();
  StringRef keyword;
  int32_t index = 0, dim = 0;
  if (failed(parser.parseOptionalKeyword(&keyword, {"none", "operand",
                                                    "operands", "sizes_of",
                                                    "size_of", "sizes_along"})))
    return parser.parseAttribute(argument);
  if (keyword == "none") {
    argument = UnitAttr::get(context);
    return success();
  }
  if (keyword == "operands") {
    SmallVector<int32_t> indices;
    auto element = [&]() -> ParseResult {
      indices.push_back(None);
      if (succeeded(parser.parseOptionalKeyword("none")))
        return success();
      return parser.parseInteger(indices.back());
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, element))
      return failure();
    argument = OperandsAttr::get(context, indices);
    return success();
  }
  if (parser.parseInteger(index))
    return failure();
  if (keyword == "size_of" && (parser.parseColon() || parser.parseInteger(dim)))
    return failure();
  argument = llvm::StringSwitch<Attribute>(keyword)
                 .Case("operand", OperandAttr::get(context, index))
                 .Case("sizes_of", SizesOfAttr::get(context, index))
                 .Case("size_of", SizeOfAttr::get(context, index, dim))
                 .Default(SizesAlongAttr::get(context, index));
  return success();
}

ParseResult parseArguments(OpAsmParser &parser, ArrayAttr &arguments) {
  SmallVector<Attribute> parsed;
  auto element = [&] { return parseArgument(parser, parsed.emplace_back()); };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, element))
    return failure();
  arguments = ArrayAttr::get(parser.getContext(), parsed);
  return success();
}

} // namespace monarch::aten
