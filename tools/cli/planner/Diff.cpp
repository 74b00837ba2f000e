// diff: what another plan decides and costs.
#include "planner/DiffPlans.h"

#include "tools/cli/planner/Inputs.h"

#include <charconv>
#include <fmt/format.h>

namespace monarch::cli {

namespace {

/// "1.5%" as a share.
std::optional<double> shareOf(const std::string &text) {
  if (text.empty() || text.back() != '%')
    return std::nullopt;
  double percent = 0;
  const char *end = text.data() + text.size() - 1;
  const auto [rest, failure] = std::from_chars(text.data(), end, percent);
  constexpr double Most = 1e6;
  if (failure != std::errc() || rest != end || !(percent >= 0) ||
      !(percent <= Most))
    return std::nullopt;
  return percent / 100;
}

Expected<planner::PlanFile> planIn(const std::string &path) {
  auto plan = readIfPlan(path);
  if (!plan)
    return plan.error();
  if (!*plan)
    return Error{"MP2210", ExitCode::BadInput, "not a plan", path,
                 "give a file that monarch-plan plan -o wrote"};
  return std::move(**plan);
}

} // namespace

int diff(const DiffOptions &options, const Console &console) {
  const auto tolerance = shareOf(options.tolerance);
  if (!tolerance)
    return console.fail({"MP1817", ExitCode::Usage,
                         fmt::format("'{}' is no tolerance", options.tolerance),
                         "--tolerance", "write a share in percent, as 1%"});
  const auto before = planIn(options.before);
  if (!before)
    return console.fail(before.error());
  const auto after = planIn(options.after);
  if (!after)
    return console.fail(after.error());
  const planner::PlanDifference difference =
      planner::diffPlans(*before, *after, *tolerance);
  console.result(planner::summarize(difference, *tolerance),
                 planner::toJson(difference, *tolerance));
  return static_cast<int>(difference.isSame() ? ExitCode::Ok
                                              : ExitCode::Negative);
}

} // namespace monarch::cli
