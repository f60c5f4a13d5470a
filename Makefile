# SPDX-License-Identifier: Apache-2.0
# The commands of a day. Each does all the set-up it needs; a second run skips what is done.
JOBS ?= $(shell nproc)
export PYTHONPATH := $(CURDIR)/build/python:$(PYTHONPATH)

.PHONY: build setup demo test test-full test-versions tsan bench cuda-kit test-cuda bench-cuda demo-python demo-start wheel sdist aarch64

build: setup
	@cmake --preset dev -DLAZY_TORCH=ON >/dev/null
	@cmake --build build -j $(JOBS)

setup:
	@tools/setup.sh

# Builds the library and one program in the folder of `build`, with less set-up than that needs. While LibTorch is
# fetched, what does not need it is compiled. A folder that is configured already, for the tests say, stays so.
demo:
	@tools/setup.sh demo-packages
	@$(MAKE) --no-print-directory -j2 demo-python demo-start
	@grep -qs LAZY_TORCH:BOOL=ON build/CMakeCache.txt || cmake --preset demo -DLAZY_TORCH=ON >/dev/null
	@cmake --build build -j $(JOBS) --target digits
	@build/bin/digits

demo-python:
	@tools/setup.sh demo-python

demo-start:
	@[ -e build/CMakeCache.txt ] || cmake --preset demo -DLAZY_TORCH=OFF >/dev/null
	@grep -q LAZY_TORCH:BOOL=ON build/CMakeCache.txt || cmake --build build -j $(JOBS) --target lazy_backends

# Tests run two at a time, with OpenMP threads that do not spin: spinning made the other test's steps twenty times as
# slow. What was counted is shown whether it passes or not.
COUNTS = grep -E '^(op_db|module_db|optim_db|error_inputs|gradcheck|random programs) ' build/Testing/Temporary/LastTest.log

test: build
	@ctest --preset dev; status=$$?; $(COUNTS); exit $$status

# All that can be checked, of which `test` is a share that takes minutes; this takes hours.
test-full: build
	@ctest --preset full; status=$$?; $(COUNTS); exit $$status

# The device against each version of PyTorch that it supports, on the CPU, in parts: what has passed is not run again. An
# environment of a version that is not in TORCHES is made there. ARGS are arguments, for instance '2.15*'; --list shows the parts.
TORCHES ?= build/torch
test-versions: setup
	@.venv/bin/python test/versions/run.py $(ARGS) --torches $(TORCHES) --jobs $(JOBS)

# A wheel for all supported versions of PyTorch, in dist/; an environment of a version that is not in TORCHES is made there.
# `make sdist` packs the sources, with Abseil's.
wheel: setup
	@.venv/bin/python packaging/make_wheel.py $(if $(VERSIONS),--versions $(VERSIONS)) --torches $(TORCHES)

sdist: setup
	@.venv/bin/python packaging/make_wheel.py --sources

# Compiles for 64-bit Arm what does, against the headers of LibTorch here. Needs Debian's g++-aarch64-linux-gnu.
aarch64: setup
	@cmake -S . -B build/aarch64 -G Ninja -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release \
	  -DLAZY_TESTS=OFF -DLAZY_BENCH=OFF -DLAZY_EXAMPLES=OFF -DLAZY_ABSEIL_SOURCE=ON $(CMAKE_ARGS) >/dev/null
	@cmake --build build/aarch64 -j $(JOBS) --target lazy_device lazy_lazy lazy_backends lazy_codegen lazy_ir lazy_base

# Eight threads that record at once, and the thread that runs ahead, under ThreadSanitizer. Builds everything anew, in build/tsan.
tsan: setup
	@cmake --preset tsan >/dev/null
	@cmake --build build/tsan -j $(JOBS) --target device_test graphs_of_threads_test lazy_run_ahead_test
	@export TSAN_OPTIONS="suppressions=$(CURDIR)/test/tsan/suppressions.txt ignore_noninstrumented_modules=1" OMP_NUM_THREADS=1; \
	  build/tsan/bin/device_test --gtest_filter='Threads.*' && \
	  LAZY_BACKEND=stand_in LAZY_COMPILE=sync build/tsan/bin/graphs_of_threads_test && \
	  LAZY_BACKEND=stand_in build/tsan/bin/lazy_run_ahead_test

bench: build
	@bench/run

# On a machine with a GPU that has PyTorch and need have no compiler: gather the kit here (after `make build`), take it there
# with the checkout, and run the other two there (without make: python3 test/cuda/run.py, python3 bench/cuda_bench.py). OUT is
# the folder of their logs; ARGS are their arguments, --list shows the parts.
KIT ?= build/cuda_kit
OUT ?= build/cuda_logs
PYTHON ?= python3

cuda-kit:
	@cmake --build build -j $(JOBS) --target torch_lazy torch_lazy_cuda programs_test train_bench host_bench null_device backends_cuda_test exit_program
	@tools/cuda_kit.sh build $(KIT)

test-cuda:
	@$(PYTHON) test/cuda/run.py --kit $(KIT) --out $(OUT) $(ARGS)

bench-cuda:
	@$(PYTHON) bench/cuda_bench.py --kit $(KIT) --out $(OUT) $(ARGS)
