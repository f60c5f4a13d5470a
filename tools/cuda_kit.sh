#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gathers what a machine with a GPU and PyTorch, but no compiler and no Abseil, needs to run the tests and benchmarks:
# cuda_kit.sh [BUILD] [KIT]. Files only, no links, stripped.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build}
kit=${2:-build/cuda_kit}
programs=(programs_test train_bench host_bench backends_cuda_test exit_program)

rm -rf "$kit"
mkdir -p "$kit/lib" "$kit/bin" "$kit/python" "$kit/site"
staged=$(mktemp -d)
trap 'rm -rf "$staged"' EXIT

cmake --install "$build" --prefix "$staged" >/dev/null
cp -L "$staged"/lib/torch-*/{libtorch_lazy*,torch_lazy_compile} "$build/lib/libtorch_lazy.torch_version" "$kit/lib/"
cp -L "$build/lib/libnull_device.so" "$kit/lib/" && strip "$kit/lib/libnull_device.so"  # what recording costs at least
echo 'file(RPATH_REMOVE FILE "${FILE}")' >"$staged/remove_rpath.cmake"
for program in "${programs[@]}"; do
  cp -L "$build/bin/$program" "$kit/bin/"
  strip "$kit/bin/$program"
  # Folders of this machine, which would come before LD_LIBRARY_PATH there.
  cmake -DFILE="$kit/bin/$program" -P "$staged/remove_rpath.cmake"
done

# What they need beside PyTorch's own libraries and the C++ runtime, under the names that they ask for.
for program in "${programs[@]}"; do ldd "$build/bin/$program"; done | awk '/=> \//{print $1, $3}' | sort -u |
  while read -r name path; do
    case $name in
      libabsl_* | libgtest* | libgmock*) cp -L "$path" "$kit/lib/$name" && strip "$kit/lib/$name" ;;
    esac
  done

cp -r python/torch_lazy "$kit/python/"
cp -r .venv/lib/python3*/site-packages/expecttest "$kit/site/"  # PyTorch's op database imports it
find "$kit" -name __pycache__ -prune -exec rm -rf {} +
(git rev-parse HEAD 2>/dev/null || echo unknown) >"$kit/revision"

size_kb=$(du -sk "$kit" | cut -f1)
if [ -n "$(find "$kit" -type l)" ] || [ "$size_kb" -gt 40960 ]; then
  echo "cuda_kit: $size_kb KiB, links: $(find "$kit" -type l)" >&2
  exit 1
fi
echo "cuda_kit: $kit, $size_kb KiB, $(find "$kit" -type f | wc -l) files"
