//===- Import.cpp - archive, symbols, captures, graph ---------------------===//
//
// The symbols in dim 0 of inputs grow together with the batch, whatever their
// names; other symbols keep the size of the export or of --shape. A dynamic
// batch is captured at two sizes. Of blocks that repeat, four are captured.
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Import.h"
#include "compiler/import/DataDependent.h"
#include "compiler/import/JointAttention.h"
#include "compiler/import/Normalize.h"
#include "compiler/import/ReadProgram.h"
#include "compiler/import/RepeatedNodes.h"
#include "compiler/import/capture/Capture.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

namespace monarch {

namespace {

Error badShape(std::string what, std::string fix) {
  return {"MP1010", ExitCode::Usage, std::move(what), "--shape",
          std::move(fix)};
}

Expected<LossSpec> parseLoss(const std::string &text) {
  LossSpec spec;
  size_t colon = text.find(':');
  if (colon == std::string::npos) {
    spec.output = text;
    return spec;
  }
  const std::string kind = text.substr(0, colon);
  size_t comma = text.find(',', colon);
  if ((kind != "ce" && kind != "causal_lm") || comma == std::string::npos ||
      comma == colon + 1 || comma + 1 == text.size())
    return Error{"MP1009", ExitCode::Usage, "not a loss: '" + text + "'",
                 "--loss",
                 "write OUTPUT, ce:LOGITS,LABELS or causal_lm:LOGITS,LABELS"};
  spec.kind =
      kind == "ce" ? LossSpec::Kind::CrossEntropy : LossSpec::Kind::CausalLm;
  spec.output = text.substr(colon + 1, comma - colon - 1);
  spec.labels = text.substr(comma + 1);
  return spec;
}

/// The sizes that the file leaves open.
struct Symbols {
  std::map<std::string, int64_t> values;
  /// Those that --shape gives.
  std::set<std::string> given;
  /// Those that grow with the rows.
  std::set<std::string> batch;
  /// Rows that `values` stand for.
  int64_t rows = 1;

  /// nullopt where a symbol would be no integer.
  std::optional<std::map<std::string, int64_t>> at(int64_t newRows) const {
    std::map<std::string, int64_t> result = values;
    for (const std::string &name : batch) {
      int64_t scaled = values.at(name) * newRows;
      if (scaled % rows != 0)
        return std::nullopt;
      result[name] = scaled / rows;
    }
    return result;
  }
};

std::optional<Error> bindInput(const ExportedLeaf &leaf,
                               const ExportedTensor &type,
                               const std::vector<int64_t> *given,
                               Symbols &symbols) {
  const std::string &name = leaf.names.front();
  if (given != nullptr && given->size() != type.sizes.size())
    return badShape(fmt::format("input '{}' has {} dims, not {}", name,
                                type.sizes.size(), given->size()),
                    "give one size a dim");
  for (size_t dim = 0; dim < type.sizes.size(); ++dim) {
    const ExportedSize &size = type.sizes[dim];
    int64_t value = given != nullptr ? (*given)[dim] : size.hint;
    if (value < 1)
      return badShape(
          fmt::format("dim {} of input '{}' has no size", dim, name),
          fmt::format("give it: --shape {}=...", name));
    if (size.symbols.empty()) {
      if (value != size.hint)
        return badShape(fmt::format("dim {} of input '{}' is fixed at {}", dim,
                                    name, size.hint),
                        "export the model with this dim dynamic");
    } else {
      if (dim == 0)
        symbols.batch.insert(size.symbols.begin(), size.symbols.end());
      if (size.symbols.size() != 1)
        continue; // as the dims say that have one of them each
      const std::string &symbol = size.symbols[0];
      const auto solved = solveSize(size.expression, symbol, value);
      if (!solved || *solved < 1)
        return badShape(
            fmt::format("dim {} of input '{}' cannot be {}: it is computed "
                        "from {}, as {}",
                        dim, name, value, symbol, size.expression),
            fmt::format("{} is such a size", size.hint));
      // A given shape wins over the sizes of the export.
      if (given != nullptr) {
        symbols.values[symbol] = *solved;
        symbols.given.insert(symbol);
      } else {
        symbols.values.emplace(symbol, *solved);
      }
    }
  }
  return std::nullopt;
}

/// Whether the sizes of two inputs were compared when the model was exported.
bool areTied(const ExportedProgram &program, const std::string &a,
             const std::string &b, size_t dim) {
  auto size = [&](const std::string &name) {
    return fmt::format("L['{}'].size()[{}]", name, dim);
  };
  return std::any_of(program.guards.begin(), program.guards.end(),
                     [&](const std::string &guard) {
                       return guard.find("==") != std::string::npos &&
                              guard.find(size(a)) != std::string::npos &&
                              guard.find(size(b)) != std::string::npos;
                     });
}

/// Inputs that --shape leaves out follow those that it names where the model
/// wants equal sizes of them, whatever symbols the export gave them.
void followGuards(const ExportedProgram &program, Symbols &symbols) {
  const auto sizesOf = [&](const ExportedLeaf &leaf) -> const auto & {
    return program.graph.tensors.at(leaf.placeholders.front()).sizes;
  };
  auto isPlain = [](const ExportedSize &size) {
    return size.symbols.size() == 1 &&
           evaluateSize(size.expression, {{size.symbols[0], 7}}) == 7;
  };
  for (const ExportedLeaf &first : program.leaves)
    for (const ExportedLeaf &other : program.leaves) {
      if (first.kind != ValueKind::Input || other.kind != ValueKind::Input)
        continue;
      const auto &from = sizesOf(first);
      const auto &to = sizesOf(other);
      for (size_t dim = 0; dim < std::min(from.size(), to.size()); ++dim)
        if (isPlain(from[dim]) && isPlain(to[dim]) &&
            from[dim].hint == to[dim].hint &&
            symbols.given.count(from[dim].symbols[0]) != 0 &&
            symbols.given.count(to[dim].symbols[0]) == 0 &&
            areTied(program, first.names[0], other.names[0], dim))
          symbols.values[to[dim].symbols[0]] =
              symbols.values.at(from[dim].symbols[0]);
    }
}

/// A size of several symbols, or of one that another dim gave.
std::optional<Error> checkGiven(const ExportedLeaf &leaf,
                                const ExportedTensor &type,
                                const std::vector<int64_t> &given,
                                const Symbols &symbols) {
  for (size_t dim = 0; dim < given.size(); ++dim) {
    const auto size = evaluate(type.sizes[dim], symbols.values);
    if (size && *size != given[dim])
      return badShape(fmt::format("dim {} of input '{}' is {}, not {}: the "
                                  "sizes of the inputs depend on each other",
                                  dim, leaf.names.front(), *size, given[dim]),
                      "give all inputs shapes that the model takes together");
  }
  return std::nullopt;
}

/// Dim 0 of the first input that has dims.
int64_t rowsOf(const ExportedProgram &program, const Symbols &symbols) {
  for (const ExportedLeaf &leaf : program.leaves) {
    const auto &sizes = program.graph.tensors.at(leaf.placeholders[0]).sizes;
    if (leaf.kind == ValueKind::Input && !sizes.empty())
      return evaluate(sizes[0], symbols.values).value_or(sizes[0].hint);
  }
  return 1;
}

Expected<Symbols> bindSymbols(const ExportedProgram &program,
                              const ImportOptions &options) {
  Symbols symbols;
  std::set<std::string> known;
  for (const ExportedLeaf &leaf : program.leaves) {
    if (leaf.kind != ValueKind::Input)
      continue;
    known.insert(leaf.names.front());
    auto given = options.shapes.find(leaf.names.front());
    if (auto error = bindInput(
            leaf, program.graph.tensors.at(leaf.placeholders.front()),
            given != options.shapes.end() ? &given->second : nullptr, symbols))
      return *error;
  }
  for (const auto &[name, shape] : options.shapes)
    if (known.count(name) == 0)
      return badShape("the model has no input '" + name + "'",
                      fmt::format("name one of: {}", fmt::join(known, ", ")));
  followGuards(program, symbols);
  for (const ExportedLeaf &leaf : program.leaves)
    if (auto given = options.shapes.find(leaf.names.front());
        leaf.kind == ValueKind::Input && given != options.shapes.end())
      if (auto error = checkGiven(
              leaf, program.graph.tensors.at(leaf.placeholders.front()),
              given->second, symbols))
        return *error;
  symbols.rows = rowsOf(program, symbols);
  return symbols;
}

class Importer {
public:
  Importer(const ExportedProgram &program, const Symbols &symbols,
           const LossSpec &loss, const ImportOptions &options)
      : program(program), symbols(symbols), options(options) {
    capturing.loss = loss;
    capturing.train = options.train;
    capturing.promoteToFloat64 = options.promoteToFloat64;
  }

  Expected<Graph> run() {
    const int64_t rows = options.unitRows.value_or(symbols.rows);
    if (symbols.batch.empty()) {
      auto graph = captureAt(symbols.rows);
      if (!graph)
        return graph;
      return withUnitRows(*graph, rows);
    }
    if (rows < 1)
      return Error{"MP1022", ExitCode::Usage,
                   fmt::format("a unit of {} rows is none", rows), "",
                   "ask for at least one row"};
    // Exports with a dynamic batch hold for two rows or more: at one row,
    // sizes of 1 would broadcast.
    const int64_t first = symbols.rows > 1 ? symbols.rows : 2;
    auto atFirst = captureAt(first);
    if (!atFirst && program.script)
      return captureFixed(rows);
    if (!atFirst)
      return atFirst;
    int64_t second = symbols.at(first + 1) ? first + 1 : 2 * first;
    auto atSecond = captureAt(second);
    if (!atSecond && program.script)
      return captureFixed(rows);
    if (!atSecond)
      return atSecond;
    if (auto graph = inferBatch(*atFirst, *atSecond)) {
      graph->separable = graph->separable && !mixesRows(*graph);
      return withUnitRows(*graph, rows);
    }
    if (program.script)
      return captureFixed(rows);
    return rows == first ? atFirst : captureAt(rows);
  }

private:
  /// No file says that a script takes any number of rows: one that has its own
  /// written into it keeps that.
  Expected<Graph> captureFixed(int64_t rows) {
    auto graph = captureAt(symbols.rows);
    if (!graph)
      return graph;
    return withUnitRows(*graph, rows);
  }

  Expected<Graph> captureAt(int64_t rows) {
    auto values = symbols.at(rows);
    if (!values)
      return badShape(fmt::format("the model cannot take {} rows", rows),
                      fmt::format("ask for a multiple of {}", symbols.rows));
    capturing.symbols = std::move(*values);
    for (;;) {
      auto raw = capture(program, capturing);
      if (!raw)
        return raw;
      Graph graph = normalize(std::move(*raw));
      graph.unitRows = rows;
      if (auto names = nonlinearCounts(graph); !names.empty()) {
        capturing.plainMeans.insert(names.begin(), names.end());
        continue;
      }
      graph.separable = isSeparable(graph);
      return graph;
    }
  }

  const ExportedProgram &program;
  const Symbols &symbols;
  const ImportOptions &options;
  CaptureOptions capturing;
};

/// The joint graph from four blocks of those that repeat; nullopt where none
/// do, or something goes wrong: then the whole program says what.
std::optional<Graph> importShortened(const ExportedProgram &program,
                                     const Symbols &symbols,
                                     const LossSpec &loss,
                                     const ImportOptions &options) {
  const auto shortened = shortenRepeats(program);
  if (!shortened)
    return std::nullopt;
  const auto graph = Importer(shortened->program, symbols, loss, options).run();
  if (!graph)
    return std::nullopt;
  return lengthenRepeats(*graph, *shortened, program);
}

} // namespace

Expected<Graph> importModel(const std::string &path,
                            const ImportOptions &options, FileFacts *facts) {
  auto loss = parseLoss(options.loss);
  if (!loss)
    return loss.error();
  auto model = openModel(path);
  if (!model)
    return model.error();
  auto program = model->isScript ? readScriptModel(path, options, facts)
                                 : readProgram(*model, facts);
  if (!program)
    return program.error();
  if (auto error = findDataDependence(*program))
    return *error;
  if (auto error = findWrongAttention(*program))
    return *error;
  auto symbols = bindSymbols(*program, options);
  if (!symbols)
    return symbols.error();
  std::optional<Graph> lengthened;
  if (!options.captureAllBlocks && !program->script && !program->isJoint() &&
      program->bufferResults.empty())
    lengthened = importShortened(*program, *symbols, *loss, options);
  auto graph = lengthened ? Expected<Graph>(std::move(*lengthened))
                          : Importer(*program, *symbols, *loss, options).run();
  if (!graph)
    return graph;
  if (auto error = verify(*graph))
    return *error;
  return graph;
}

} // namespace monarch
