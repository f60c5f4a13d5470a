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

# The preset's tests run two at a time, with OpenMP threads that do not spin: spinning made the other test's steps
# twenty times as slow. The counts of op_db and of the random programs are shown whether it passes or not.
test: build
	@ctest --preset dev; status=$$?; grep -E '^(op_db|random programs) ' build/Testing/Temporary/LastTest.log; exit $$status

bench: build
	@bench/run
