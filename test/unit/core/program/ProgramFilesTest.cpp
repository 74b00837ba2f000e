//===- ProgramFilesTest.cpp -----------------------------------------------===//
//
// monarch.program/1: round trips, and what is refused.
//
//===----------------------------------------------------------------------===//
#include "core/program/ProgramFormat.h"
#include "core/support/Files.h"
#include "core/support/Sha256.h"
#include "test/support/ProgramBuilder.h"
#include "test/support/TemporaryFolder.h"

#include <catch2/catch.hpp>
#include <limits>

using namespace monarch;

namespace {

std::string contentOf(const std::string &path) {
  Expected<std::string> content = readFile(path);
  REQUIRE(content);
  return *content;
}

void replace(std::string &text, const std::string &from,
             const std::string &to) {
  size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

/// Reads the sample with one text replaced in a role, digest corrected.
Error errorOfRole(const std::string &from, const std::string &to) {
  test::TemporaryFolder folder;
  std::string path = folder / "program";
  REQUIRE_FALSE(writeProgram(test::sampleProgram(), path));
  std::string role = contentOf(path + "/role-0.json");
  std::string manifest = contentOf(path + "/manifest.json");
  std::string digest = sha256(role), bytes = std::to_string(role.size());
  replace(role, from, to);
  replace(manifest, digest, sha256(role));
  replace(manifest, "\"bytes\": " + bytes,
          "\"bytes\": " + std::to_string(role.size()));
  REQUIRE_FALSE(writeFile(path + "/role-0.json", role));
  REQUIRE_FALSE(writeFile(path + "/manifest.json", manifest));
  Expected<Program> program = readProgram(path);
  REQUIRE_FALSE(program);
  return program.error();
}

Error errorOfManifest(const std::string &from, const std::string &to) {
  test::TemporaryFolder folder;
  std::string path = folder / "program";
  REQUIRE_FALSE(writeProgram(test::sampleProgram(), path));
  std::string manifest = contentOf(path + "/manifest.json");
  replace(manifest, from, to);
  REQUIRE_FALSE(writeFile(path + "/manifest.json", manifest));
  Expected<Program> program = readProgram(path);
  REQUIRE_FALSE(program);
  return program.error();
}

} // namespace

TEST_CASE("a program is written, read and written to the same bytes") {
  test::TemporaryFolder folder;
  Program program = test::sampleProgram();
  program.predicted.bytes["all_reduce"] = 12;
  program.predicted.collectives["all_reduce"] = 1;
  program.predictedPeakBytes = 99;
  // Every sort of argument, and numbers that JSON cannot hold.
  Instruction &call = test::instructionOf(
      program.roles[0], SegmentKind::Forward, InstructionKind::Call);
  call.op = 3;
  call.args = {std::monostate(),
               OperandArg{1},
               OperandListArg{{0, -1}},
               true,
               Expr::constant(-5),
               Expr::size({0, 0, 1}) * Expr::size({0}) + Expr::constant(2),
               0.1,
               -std::numeric_limits<double>::infinity(),
               std::string("mean"),
               std::vector<Expr>{},
               std::vector<Expr>{Expr::constant(1), Expr::size({0})},
               std::vector<double>{1.0, 1e300},
               std::vector<bool>{true, false},
               DType::BFloat16};
  program.roles[0].origins = {{3, "blocks.0.attn", "model.py:31"},
                              {7, "", "x"}};
  std::string path = folder / "program";
  REQUIRE_FALSE(writeProgram(program, path));
  Expected<Program> read = readProgram(path);
  REQUIRE(read);
  CHECK(filesOf(*read) == filesOf(program));
  CHECK(read->roles[0].segments[2].instructions[0].args == call.args);
  CHECK(read->roles[1].schedule == program.roles[1].schedule);
  CHECK(textOfOp(read->roles[0], 3) == "op 3 of blocks.0.attn (model.py:31)");
  CHECK(textOfOp(read->roles[0], 4) == "op 4");
  CHECK(textOfOp(read->roles[0], 7) == "op 7 of x");
  CHECK(read->predicted == program.predicted);
  CHECK(read->worldSize() == 4);
  for (const char *name : {"manifest.json", "role-0.json", "role-1.json"})
    CHECK(contentOf(path + "/" + name) == filesOf(program).at(name));
}

TEST_CASE("master copies are named where there are any") {
  test::TemporaryFolder folder;
  std::string path = folder / "program";
  Program program = test::sampleProgram();
  CHECK(filesOf(program).at("role-0.json").find("master") == std::string::npos);
  program.roles[0].parameters[0].master = 2;
  REQUIRE_FALSE(writeProgram(program, path));
  Expected<Program> read = readProgram(path);
  REQUIRE(read);
  CHECK(read->roles[0].parameters[0].master == 2);
  CHECK(read->roles[1].parameters[0].master == None);
  CHECK(filesOf(*read) == filesOf(program));
}

TEST_CASE("a program replaces an older one with more stages") {
  test::TemporaryFolder folder;
  std::string path = folder / "program";
  Program program = test::sampleProgram();
  REQUIRE_FALSE(writeProgram(program, path));
  program.roles.pop_back();
  REQUIRE_FALSE(writeProgram(program, path));
  CHECK_FALSE(readFile(path + "/role-1.json"));
  REQUIRE_FALSE(writeFile(path + "/notes.txt", "mine"));
  CHECK(writeProgram(program, path)->id == "MP1902");
}

TEST_CASE("expressions have one spelling") {
  for (const char *text : {"s3", "s3@1:0", "4*s3*s5+2", "-1*s0", "s0+s1"}) {
    std::optional<Expr> expr = parseExpr(text);
    REQUIRE(expr);
    CHECK(jsonOfExpr(*expr) == text);
  }
  for (const char *text : {"", "s", "3", "s3@", "s3@-1:0", "1*s3", "s3 ", "s3+",
                           "+s3", "x", "s03", "4*", "s99999999999"})
    CHECK_FALSE(parseExpr(text));
}

TEST_CASE("a role that is not the manifest's is refused") {
  test::TemporaryFolder folder;
  std::string path = folder / "program";
  REQUIRE_FALSE(writeProgram(test::sampleProgram(), path));
  REQUIRE_FALSE(
      writeFile(path + "/role-1.json", contentOf(path + "/role-0.json")));
  CHECK(readProgram(path).error().id == "MP2102");
  REQUIRE_FALSE(writeFile(path + "/role-1.json", ""));
  CHECK_FALSE(readProgram(path));
  std::filesystem::remove(path + "/role-1.json");
  CHECK(readProgram(path).error().id == "MP1901");
  CHECK(readProgram(folder / "absent").error().id == "MP1901");
}

TEST_CASE("role files are read strictly") {
  CHECK(errorOfRole("\"stage\": 0", "\"stage\": 0, \"x\": 1").id == "MP2101");
  CHECK(errorOfRole("\"do\": \"call\"", "\"do\": \"jump\"").what ==
        "unknown word \"jump\"");
  CHECK(
      errorOfRole("\"do\": \"call\"", "\"do\": \"call\", \"peer\": -1").what ==
      "not in canonical form: it was edited or written by another tool");
  CHECK(errorOfRole("\"float32\"", "\"float31\"").id == "MP2101");
  CHECK(errorOfRole("\"s0\"", "\"s00\"").id == "MP2101");
  CHECK(errorOfRole("{\"operand\": 0}", "{\"operant\": 0}").id == "MP2101");
  CHECK(errorOfRole("\"zeroed\": ", "\"zeroed\":  ").what.find("canonical") !=
        std::string::npos);
}

TEST_CASE("manifests are read strictly") {
  CHECK(errorOfManifest("monarch.program/1", "monarch.program/2").what ==
        "schema \"monarch.program/2\", this reads \"monarch.program/1\"");
  CHECK(errorOfManifest("\"mesh\"", "\"mush\"").id == "MP2101");
  CHECK(errorOfManifest("\"size\": 2", "\"size\": 0").id == "MP2101");
  CHECK(errorOfManifest("role-1.json", "../role-1.json").id == "MP2101");
  CHECK(errorOfManifest("[0, 3, 5]", "[0, 6, 5]").what ==
        "offsets do not rise from 0 to the extent");
  CHECK(errorOfManifest("[0, 3, 5]", "[]").id == "MP2101");
  CHECK(errorOfManifest("\"tensor\"", "\"sensor\"").id == "MP2101");
  CHECK(errorOfManifest("{", "").id == "MP1903");
}
