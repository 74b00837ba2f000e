#include "tools/cli/Verbs.h"

namespace monarch::cli {

int version(const Console &console) {
  Json document;
  document["name"] = "monarch-plan";
  document["version"] = MONARCH_VERSION;
  console.result("monarch-plan " MONARCH_VERSION "\n", document);
  return static_cast<int>(ExitCode::Ok);
}

} // namespace monarch::cli
