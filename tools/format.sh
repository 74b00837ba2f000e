#!/usr/bin/env bash
# Checks the format of every tracked C++ file against .clang-format, by the
# clang-format of Debian 12 (other versions format otherwise); --fix rewrites.
#
# usage: tools/format.sh [--fix]
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(--dry-run -Werror)
case ${1:-} in
  '') ;;
  --fix) mode=(-i) ;;
  *)
    echo "usage: tools/format.sh [--fix]" >&2
    exit 2
    ;;
esac

# A checkout of another user is read all the same.
git -c safe.directory="$PWD" ls-files -z -- '*.cpp' '*.h' | xargs -0 -P "$(nproc)" -n 16 clang-format-14 "${mode[@]}"
