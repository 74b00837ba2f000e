//===- DumpGraph.cpp - a model's graph as JSON ----------------------------===//
//
// usage: dump-graph MODEL.pt2 [--loss SPEC] [--rows N] [--infer] [-o FILE]
// Writes the fixtures of test/fixtures/graphs (regenerate.sh there).
//
//===----------------------------------------------------------------------===//
#include "compiler/import/Import.h"

#include <CLI/CLI.hpp>

#include <fstream>
#include <iostream>

int main(int argc, char **argv) {
  std::string model, output;
  monarch::ImportOptions options;
  bool infer = false;
  CLI::App app("The joint graph of a model as JSON");
  app.add_option("model", model)->required();
  app.add_option("--loss", options.loss);
  app.add_option("--rows", options.unitRows);
  app.add_flag("--infer", infer);
  app.add_option("-o", output);
  CLI11_PARSE(app, argc, argv);
  options.train = !infer;
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
