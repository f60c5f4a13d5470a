#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs: Debian packages where missing, and .venv with the pinned Python packages.
#
# Everything already there is skipped. What cannot be installed is named in one line, with the command that installs it.
# PYTHON chooses the interpreter of .venv (default python3).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

fail() {
  echo "setup: $1" >&2
  exit 1
}

# Each package, and a test that it is there: a machine may have a compiler or Python that no Debian package brought.
missing_packages() {
  local headers=/usr/include
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v ccache >/dev/null || echo ccache
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
  [ -e $headers/absl/base/config.h ] || echo libabsl-dev
  [ -e $headers/gtest/gtest.h ] || echo libgtest-dev
  [ -e $headers/gmock/gmock.h ] || echo libgmock-dev
  [ -e $headers/benchmark/benchmark.h ] || echo libbenchmark-dev
}

install_packages() {
  local packages=("$@") as_root=() command
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  command="apt-get install -y --no-install-recommends ${packages[*]}"
  echo "setup: installing ${packages[*]}"
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" $command -qq; } >"$log" 2>&1; then
    tail -5 "$log" >&2
    fail "missing ${packages[*]}; install with: sudo $command"
  fi
}

# The stamp is named by the content of requirements.txt, so that a changed pin is noticed and nothing else is redone.
install_python_packages() {
  local stamp install
  stamp=.venv/.installed-$(sha256sum requirements.txt | cut -c1-16)
  [ -e "$stamp" ] && return
  [ -x .venv/bin/python ] || "$python" -m venv .venv || fail "no virtual environment; create it with: $python -m venv .venv"
  echo "setup: installing PyTorch and the test packages into .venv"
  install=".venv/bin/python -m pip install --require-hashes --disable-pip-version-check -r requirements.txt"
  if ! $install >"$log" 2>&1; then
    tail -5 "$log" >&2
    fail "Python packages are missing in .venv; install with: $install"
  fi
  rm -f .venv/.installed-*
  touch "$stamp"
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
mapfile -t packages < <(missing_packages)
[ ${#packages[@]} = 0 ] || install_packages "${packages[@]}"
install_python_packages
