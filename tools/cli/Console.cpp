#include "tools/cli/Console.h"

#include "core/support/Printable.h"

#include <iostream>

namespace monarch::cli {

void Console::result(std::string_view text, const Json &document) const {
  if (format == Format::Json)
    std::cout << writeJson(document);
  else
    std::cout << printable(text);
  std::cout.flush();
}

void Console::file(std::string_view bytes) const {
  std::cout << bytes;
  std::cout.flush();
}

void Console::note(std::string_view text) const {
  std::cerr << printable(text) << '\n';
}

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
