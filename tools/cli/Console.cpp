#include "tools/cli/Console.h"

#include <iostream>

namespace monarch::cli {

void Console::result(std::string_view text, const Json &document) const {
  if (format == Format::Json)
    std::cout << writeJson(document);
  else
    std::cout << text;
  std::cout.flush();
}

void Console::note(std::string_view text) const { std::cerr << text << '\n'; }

int Console::fail(const Error &error) const {
  if (format == Format::Json) {
    Json document;
    document["error"]["id"] = error.id;
    document["error"]["code"] = static_cast<int>(error.code);
    document["error"]["message"] = error.what;
    document["error"]["where"] = error.where;
    document["error"]["fix"] = error.fix;
    std::cout << writeJson(document);
    std::cout.flush();
  }
  std::cerr << toString(error) << '\n';
  return static_cast<int>(error.code);
}

} // namespace monarch::cli
