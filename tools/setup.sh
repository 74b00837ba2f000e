#!/usr/bin/env bash
# Installs what the build needs and is missing: Debian packages, and the Python
# packages of requirements.txt in .venv. Safe to repeat; quick when all is there.
#
# usage: tools/setup.sh
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  build-essential git                                             # compiler
  cmake ninja-build ccache lld                                    # build
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools          # compiler/
  nlohmann-json3-dev libcli11-dev libfmt-dev                      # libraries
  catch2 clang-format-14                                          # tests
  python3 python3-venv                                            # LibTorch
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done

if ((${#missing[@]})); then
  as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "setup: missing packages, and neither root nor sudo to install them:" \
        "${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  apt_get() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q \
      -o Acquire::Retries=3 "$@" >&2
  }
  apt_get update
  apt_get install -y --no-install-recommends "${missing[@]}"
fi

if [[ ! -x .venv/bin/python ]]; then
  echo "setup: making .venv" >&2
  python3 -m venv .venv
fi
# The stamp is the file that was last installed from.
if ! cmp -s requirements.txt .venv/requirements.installed; then
  echo "setup: installing requirements.txt in .venv" >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    --retries 5 -r requirements.txt >&2
  cp requirements.txt .venv/requirements.installed
fi
