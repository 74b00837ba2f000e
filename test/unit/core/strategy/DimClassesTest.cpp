//===- DimClassesTest.cpp - facts about dims, first come wins -------------===//

#include "core/strategy/DimClasses.h"

#include <catch2/catch.hpp>

using namespace monarch;

TEST_CASE("merged dims share cuts and factors") {
  DimClasses classes;
  int a = classes.add(12), b = classes.add(12), c = classes.add(12);
  classes.merge(b, a);
  classes.addCut(a, 8);
  classes.addSuffix(b, 0, 4);
  CHECK(classes.structure(a) == classes.structure(b));
  CHECK(classes.structure(a) ==
        DimStructure{12, {{0, 8, {2, 4}}, {8, 12, {4}}}});
  CHECK(classes.structure(c) == DimStructure{12, {{0, 12, {12}}}});
}

TEST_CASE("a suffix that contradicts an earlier one is refused") {
  DimClasses classes;
  int a = classes.add(24);
  classes.addSuffix(a, 0, 4);
  classes.addSuffix(a, 0, 12);
  CHECK(classes.takeChanged());
  classes.addSuffix(a, 0, 6);  // neither divides nor is divided by 4
  classes.addSuffix(a, 0, 5);  // does not divide 24
  classes.addSuffix(a, 0, 1);  // says nothing
  classes.addSuffix(a, 0, 24); // says nothing
  classes.addSuffix(a, 0, 12); // known
  CHECK_FALSE(classes.takeChanged());
  CHECK(classes.structure(a) == DimStructure{24, {{0, 24, {2, 3, 4}}}});
}

TEST_CASE("a cut that leaves a section of size 1 is refused") {
  DimClasses classes;
  int a = classes.add(8);
  classes.addCut(a, 1);
  classes.addCut(a, 7);
  CHECK_FALSE(classes.takeChanged());
  CHECK_FALSE(classes.hasBorder(a, 7));
  classes.addCut(a, 6);
  CHECK(classes.hasBorder(a, 0));
  CHECK(classes.hasBorder(a, 6));
  CHECK(classes.hasBorder(a, 8));
  CHECK(classes.structure(a) == DimStructure{8, {{0, 6, {6}}, {6, 8, {2}}}});
}

TEST_CASE("a dim of one element has a section without factors") {
  DimClasses classes;
  CHECK(classes.structure(classes.add(1)) == DimStructure{1, {{0, 1, {}}}});
}
