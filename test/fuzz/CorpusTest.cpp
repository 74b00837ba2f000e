//===- CorpusTest.cpp - the corpus and its neighbours ---------------------===//
//
// Every file of the corpus goes through its reader, and so do files with bytes
// changed, cut out, repeated or swapped with those of another file. Under
// sanitizers in preset asan.
//
//===----------------------------------------------------------------------===//
#include "core/support/Files.h"
#include "test/fuzz/Readers.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <random>

using namespace monarch;
using namespace monarch::test;

namespace {

using Corpus = std::vector<std::string>;

Corpus corpusOf(std::string_view reader) {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(
           std::string(MONARCH_CORPUS) + "/" + std::string(reader)))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  Corpus corpus;
  for (const auto &path : paths) {
    auto bytes = readFile(path.string());
    REQUIRE(bytes);
    corpus.push_back(std::move(*bytes));
  }
  return corpus;
}

std::string mutated(const Corpus &corpus, std::mt19937 &random) {
  auto below = [&](size_t bound) { return bound ? random() % bound : 0; };
  std::string bytes = corpus[below(corpus.size())];
  for (size_t change = 1 + below(4); change > 0; --change) {
    size_t at = below(bytes.size()), length = 1 + below(8);
    switch (below(5)) {
    case 0:
      if (!bytes.empty())
        bytes[at] = static_cast<char>(random());
      break;
    case 1:
      bytes.erase(at, length);
      break;
    case 2:
      bytes.insert(at, bytes.substr(at, length));
      break;
    case 3: {
      const std::string &other = corpus[below(corpus.size())];
      size_t from = below(other.size());
      bytes.replace(at, std::min(length, bytes.size() - at),
                    other.substr(from, length));
      break;
    }
    default:
      bytes.resize(at);
    }
  }
  return bytes;
}

} // namespace

TEST_CASE("Readers give typed errors in bounded memory") {
  for (const Reader &reader : readers()) {
    DYNAMIC_SECTION(std::string(reader.name)) {
      Corpus corpus = corpusOf(reader.name);
      size_t accepted = 0;
      for (const std::string &bytes : corpus)
        accepted += accepts(reader, bytes);
      // A corpus of refusals alone would test one line of the reader.
      CHECK(accepted > 0);
      constexpr unsigned seed = 1;
      CAPTURE(seed);
      std::mt19937 random(seed);
      size_t refused = 0;
      constexpr size_t trials = 300;
      for (size_t trial = 0; trial < trials; ++trial)
        refused += !accepts(reader, mutated(corpus, random));
      CHECK(refused > 0);
    }
  }
}
