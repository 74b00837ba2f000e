//===- Error.cpp - errors as text -----------------------------------------===//
//
// The one spelling of an error for people; parts that it lacks leave no line.
//
//===----------------------------------------------------------------------===//
#include "core/support/Error.h"

namespace monarch {

std::string toString(const Error &error) {
  std::string text = "error " + error.id + ": " + error.what;
  if (!error.where.empty())
    text += "\n  at " + error.where;
  if (!error.fix.empty())
    text += "\n  fix: " + error.fix;
  return text;
}

} // namespace monarch
