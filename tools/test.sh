#!/usr/bin/env bash
# Sets up, builds and tests. The quick tier leaves out the tests labelled `full`;
# --full runs all of them, and before them core and planner built alone, plain and
# under sanitizers. A preset that fails does not hide the others; the last lines are the
# summary of ctest for the whole project.
#
# usage: tools/test.sh [--full]
set -euo pipefail
cd "$(dirname "$0")/.."

tier=(--label-exclude '^full$')
case ${1:-} in
  '') ;;
  --full) tier=() ;;
  *)
    echo "usage: tools/test.sh [--full]" >&2
    exit 2
    ;;
esac

failed=()
test_preset() {
  local preset=$1
  shift
  { tools/build.sh "$preset" && ctest --preset "$preset" --parallel "$(nproc)" "$@"; } ||
    failed+=("$preset")
}

if ((${#tier[@]} == 0)); then
  test_preset planner
  test_preset asan
fi
test_preset dev "${tier[@]}"
((${#failed[@]} == 0)) || { echo "failed presets: ${failed[*]}" >&2; exit 1; }
