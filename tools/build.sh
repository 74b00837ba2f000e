#!/usr/bin/env bash
# Sets up, configures and builds one preset of CMakePresets.json into
# build/PRESET.
#
# usage: tools/build.sh [PRESET [TARGET...]]      (PRESET: dev)
set -euo pipefail
cd "$(dirname "$0")/.."

preset=${1:-dev}
shift || true

tools/setup.sh
mkdir -p build
# CMake's output is worth reading only when it fails.
log=build/configure-$preset.log
if ! cmake --preset "$preset" >"$log" 2>&1; then
  cat "$log" >&2
  exit 1
fi
cmake --build --preset "$preset" ${1:+--target "$@"}
