//===- Error.cpp - errors as text -----------------------------------------===//
//
// The one spelling of an error for people; parts that it lacks leave no line.
//
//===----------------------------------------------------------------------===//
#include "core/support/Error.h"

#include "core/support/Printable.h"

namespace monarch {

std::string toString(const Error &error) {
  std::string text = "error " + error.id + ": " + error.what;
  if (!error.where.empty())
    text += "\n  at " + error.where;
  if (!error.fix.empty())
    text += "\n  fix: " + error.fix;
  return printable(text);
}

Error joined(const std::vector<Error> &errors) {
  // More than a screen says nothing new.
  constexpr size_t MostLines = 20;
  Error all = errors.front();
  if (errors.size() == 1)
    return all;
  all.what = std::to_string(errors.size()) + " violations:";
  all.where.clear();
  for (size_t i = 0; i < errors.size() && i < MostLines; ++i) {
    all.what += "\n  " + errors[i].what;
    if (!errors[i].where.empty())
      all.what += ", at " + errors[i].where;
  }
  if (errors.size() > MostLines)
    all.what +=
        "\n  and " + std::to_string(errors.size() - MostLines) + " more";
  return all;
}

} // namespace monarch
