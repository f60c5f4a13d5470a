# SPDX-License-Identifier: Apache-2.0
# The commands of a day. Each does all the set-up it needs; a second run skips what is done.
JOBS ?= $(shell nproc)
export PYTHONPATH := $(CURDIR)/build/python:$(PYTHONPATH)

.PHONY: build setup demo test bench

build: setup
	@cmake --preset dev >/dev/null
	@cmake --build build -j $(JOBS)

setup:
	@tools/setup.sh

demo: build
	@build/bin/digits

test: build
	@ctest --test-dir build -j 2 --output-on-failure

bench: build
	@bench/run
