//===- DumpGraph.cpp - a model's graph as JSON ----------------------------===//
//
// usage: dump-graph MODEL.pt2 [--loss SPEC] [--rows N] [--shape NAME=AxB]...
//                   [--infer] [--all-blocks] [-o FILE]
// Writes the fixtures of test/fixtures/graphs (regenerate.sh there).
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Import.h"

#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>
#include <sstream>

namespace {

/// "ids=4x16"; empty when it is not written so.
std::pair<std::string, std::vector<int64_t>>
parseShape(const std::string &text) {
  size_t equals = text.find('=');
  if (equals == std::string::npos)
    return {};
  std::vector<int64_t> sizes;
  std::istringstream rest(text.substr(equals + 1));
  for (std::string size; std::getline(rest, size, 'x');)
    sizes.push_back(std::atoll(size.c_str()));
  return {text.substr(0, equals), sizes};
}

} // namespace

int main(int argc, char **argv) {
  std::string model, output;
  std::vector<std::string> shapes;
  monarch::ImportOptions options;
  bool infer = false;
  CLI::App app("The joint graph of a model as JSON");
  app.add_option("model", model)->required();
  app.add_option("--loss", options.loss);
  app.add_option("--rows", options.unitRows);
  app.add_option("--shape", shapes);
  app.add_flag("--infer", infer);
  app.add_flag("--all-blocks", options.captureAllBlocks);
  app.add_option("-o", output);
  CLI11_PARSE(app, argc, argv);
  options.train = !infer;
  for (const std::string &shape : shapes)
    options.shapes.insert(parseShape(shape));
  auto graph = monarch::importModel(model, options);
  if (!graph) {
    std::cerr << toString(graph.error()) << "\n";
    return static_cast<int>(graph.error().code);
  }
  const std::string text = writeGraph(*graph);
  if (output.empty())
    std::cout << text;
  else
    std::ofstream(output, std::ios::binary) << text;
  return 0;
}
