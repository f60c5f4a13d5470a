#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the build needs: Debian packages where missing, and .venv with the pinned Python packages.
#
#   tools/setup.sh                 all
#   tools/setup.sh demo-packages   what the library and the demo need, without .venv
#   tools/setup.sh demo-python     .venv with LibTorch alone: enough for C++, and not for `import torch`
#
# Everything already there is skipped. What cannot be installed, or is too old, is named in one line, with the command
# that installs it. PYTHON chooses the interpreter of .venv (default python3).
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}

fail() {
  echo "setup: $1" >&2
  exit 1
}

# Each package, and a test that it is there: a machine may have a compiler or Python that no Debian package brought.
packages_missing_for_demo() {
  local headers=/usr/include
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v ccache >/dev/null || echo ccache
  "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || echo python3-venv
  [ -e $headers/absl/base/config.h ] || echo libabsl-dev
}

packages_missing_for_tests() {
  local headers=/usr/include
  [ -e $headers/gtest/gtest.h ] || echo libgtest-dev
  [ -e $headers/gmock/gmock.h ] || echo libgmock-dev
  [ -e $headers/benchmark/benchmark.h ] || echo libbenchmark-dev
}

install_packages() {
  [ $# != 0 ] || return 0
  local as_root=() command
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  command -v apt-get >/dev/null || fail "missing $*, by Debian's names; install them with this system's own installer"
  command="apt-get install -y --no-install-recommends $*"
  echo "setup: installing $*"
  if ! { "${as_root[@]}" apt-get update -qq && "${as_root[@]}" $command -qq; } >"$log" 2>&1; then
    tail -5 "$log" >&2
    fail "missing $*; install with: sudo $command"
  fi
}

# at_least WANTED FOUND: whether the version FOUND is WANTED or a newer one.
at_least() {
  [ "$(printf '%s\n' "$1" "$2" | sort -V | head -1)" = "$1" ]
}

check_versions() {
  local machine cmake compiler interpreter
  machine=$(uname -sm)
  [ "$machine" = "Linux x86_64" ] || fail "PyTorch's package for Linux x86_64 is used, and this is $machine"
  cmake=$(cmake --version | head -1 | grep -o '[0-9.]*$')
  at_least 3.25 "$cmake" || fail "CMake 3.25 is needed, and cmake is $cmake; a newer one: python3 -m pip install cmake"
  compiler=$(g++ -dumpfullversion)
  at_least 12 "$compiler" || fail "GCC 12 is needed, and g++ is $compiler; install g++-12, and make it g++"
  interpreter=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  case $interpreter in
    3.11 | 3.12 | 3.13) ;;
    *) fail "Python 3.11 to 3.13 is needed, and $python is $interpreter; PYTHON=<program> names another" ;;
  esac
}

# Where there is a GPU, LibTorch needs CUDA's libraries; elsewhere these two are what libtorch_cpu.so is linked to.
is_demo_package() {
  case $1 in
    torch | nvidia-cuda-cupti | nvidia-cuda-runtime) ;;
    triton) return 1 ;;
    nvidia-* | cuda-*) [ -e /proc/driver/nvidia/version ] ;;
    *) return 1 ;;
  esac
}

# The lines of requirements.txt that the demo needs: a package is a line, and its hashes the lines after it.
demo_requirements() {
  local line package
  while IFS= read -r line; do
    case $line in
      \#*) continue ;;
      [a-z]*) package=${line%%==*} ;;
    esac
    if is_demo_package "$package"; then echo "$line"; fi
  done <requirements.txt
}

# install_python_packages STAMP REQUIREMENTS NAME OPTION...: the stamp says that they are installed.
install_python_packages() {
  local stamp=$1 requirements=$2 what=$3 pip=".venv/bin/python -m pip install --require-hashes"
  shift 3
  [ -e "$stamp" ] && return
  [ -x .venv/bin/python ] || "$python" -m venv .venv || fail "no virtual environment; create it with: $python -m venv .venv"
  echo "setup: installing $what into .venv"
  if ! $pip --disable-pip-version-check "$@" -r "$requirements" >"$log" 2>&1; then
    tail -5 "$log" >&2
    fail "Python packages are missing in .venv; install with: $pip -r requirements.txt"
  fi
  rm -f "${stamp%-*}"-*
  touch "$stamp"
}

# Stamps are named by the content of requirements.txt, so that a changed pin is noticed and nothing else is redone.
sum=$(sha256sum requirements.txt | cut -c1-16)

install_torch() {
  [ ! -e .venv/.installed-"$sum" ] || return 0
  demo_requirements >"$few"
  install_python_packages .venv/.torch-"$sum" "$few" PyTorch --no-deps --no-compile
}

log=$(mktemp)
few=$(mktemp)
trap 'rm -f "$log" "$few"' EXIT
case ${1:-all} in
  all)
    mapfile -t packages < <(packages_missing_for_demo; packages_missing_for_tests)
    install_packages "${packages[@]}"
    check_versions
    install_python_packages .venv/.installed-"$sum" requirements.txt "PyTorch and the test packages"
    ;;
  demo-packages)
    mapfile -t packages < <(packages_missing_for_demo)
    install_packages "${packages[@]}"
    check_versions
    ;;
  demo-python)
    install_torch
    ;;
  *) fail "no part $1: tools/setup.sh [demo-packages|demo-python]" ;;
esac
