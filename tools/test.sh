#!/usr/bin/env bash
# Sets up, builds and tests. The quick tier leaves out the tests labelled `full`;
# --full runs all of them, and before them core and planner built alone, plain and
# under sanitizers. The last lines are the summary of ctest.
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

test_preset() {
  local preset=$1
  shift
  tools/build.sh "$preset"
  ctest --preset "$preset" --parallel "$(nproc)" "$@"
}

if ((${#tier[@]} == 0)); then
  test_preset planner
  test_preset asan
fi
test_preset dev "${tier[@]}"
