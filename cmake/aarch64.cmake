# SPDX-License-Identifier: Apache-2.0
# A cross build for 64-bit Arm with Debian's g++-aarch64-linux-gnu: `make aarch64`.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
