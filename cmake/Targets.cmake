# SPDX-License-Identifier: Apache-2.0
# How the folders declare what they build: lazy_library, lazy_test, lazy_bench.
#
#   lazy_library(lazy_ir SRCS graph.cc type.cc DEPS lazy_base)             a folder's static library
#   lazy_library(lazy_lazy TORCH SRCS ... DEPS lazy_backends)              the same, with LibTorch's headers precompiled
#   lazy_test(ir_graph_test SRCS graph_test.cc DEPS lazy_ir)               a GoogleTest program; one ctest test per program
#   lazy_test(device_recorder_test TORCH SRCS ... DEPS torch_lazy)         against the shared library
#   lazy_bench(record_bench TORCH SRCS ... DEPS torch_lazy)                a Google Benchmark program
#
# DEPS names our targets, absl:: targets (torch_lazy passes none on) and others; what a folder may name
# is the table in docs/architecture.md.
# Link a test either with folders' libraries or with torch_lazy, never with both: each brings its own globals.
# lazy::openmp compiles and links OpenMP with PyTorch's runtime where there is one.

add_library(lazy_openmp INTERFACE)
add_library(lazy::openmp ALIAS lazy_openmp)
target_compile_options(lazy_openmp INTERFACE -fopenmp)
if(LAZY_TORCH)
  target_link_libraries(lazy_openmp INTERFACE torch::gomp)
else()
  target_link_options(lazy_openmp INTERFACE -fopenmp)
endif()

if(LAZY_TORCH)
  # Not of all targets: what does not depend on LibTorch is compiled alike for each version of it.
  target_compile_options(torch::cpu INTERFACE -fmacro-prefix-map=${LAZY_TORCH_DIR}/include/=)
  # Compiled once, used by every TORCH target: these headers cost about four seconds a file.
  file(CONFIGURE OUTPUT torch_headers.cc CONTENT "// Only carries the precompiled header.\n")
  add_library(lazy_torch_headers STATIC ${PROJECT_BINARY_DIR}/torch_headers.cc)
  target_link_libraries(lazy_torch_headers PUBLIC torch::cpu)
  target_compile_options(lazy_torch_headers PRIVATE -fpch-preprocess)
  target_precompile_headers(lazy_torch_headers PRIVATE
    <algorithm> <array> <atomic> <cstdint> <cstring> <functional> <memory> <mutex> <optional> <string> <string_view>
    <unordered_map> <utility> <vector>
    <ATen/core/Tensor.h> <ATen/core/dispatch/Dispatcher.h> <ATen/core/ivalue.h> <ATen/core/stack.h>
    <c10/core/StorageImpl.h> <c10/core/TensorImpl.h> <torch/library.h>)
endif()

# Of a folder without LibTorch, where each file is compiled alone: these cost about a second a file. GCC forgets that a
# precompiled header is the system's, and warns of arrays in Abseil's.
function(lazy_use_common_headers target)
  target_compile_options(${target} PRIVATE -fpch-preprocess -Wno-array-bounds)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <string> <utility> <vector>
    <absl/container/flat_hash_map.h> <absl/container/flat_hash_set.h> <absl/container/inlined_vector.h>
    <absl/status/statusor.h> <absl/strings/str_cat.h> <absl/strings/str_join.h> <absl/types/span.h>)
endfunction()

function(lazy_use_torch target)
  target_link_libraries(${target} PUBLIC torch::cpu)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC -fpch-preprocess)  # in programs too: a precompiled header is PIC or PIE
  target_precompile_headers(${target} REUSE_FROM lazy_torch_headers)
endfunction()

# The files of a folder are compiled as one, since most of a file's time is its headers: names that are hidden in a file
# differ within the folder. A file with options of its own stays by itself, and one with SKIP_UNITY_BUILD_INCLUSION.
# CMake's UNITY_BUILD would name the files by their whole paths, and ccache would know them in one checkout only.
option(LAZY_UNITY "Compile the files of a folder as one" ON)
# lazy_join_files(variable n prefix): at most n of a folder's files become one, whose name begins with the prefix.
function(lazy_join_files variable n prefix)
  foreach(source IN LISTS ${variable})
    get_source_file_property(options ${source} COMPILE_OPTIONS)
    get_source_file_property(is_skipped ${source} SKIP_UNITY_BUILD_INCLUSION)
    cmake_path(ABSOLUTE_PATH source)
    if(options OR is_skipped)
      list(APPEND joined ${source})
      continue()
    endif()
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    cmake_path(GET source PARENT_PATH folder)
    string(REPLACE "/" "_" unit ${prefix}${folder})
    math(EXPR batch "0${count_of_${unit}} / ${n}")
    math(EXPR count_of_${unit} "0${count_of_${unit}} + 1")
    if(batch)
      string(APPEND unit _${batch})
    endif()
    list(APPEND units ${unit})
    string(APPEND content_of_${unit} "#include \"${source}\"\n")
  endforeach()
  list(REMOVE_DUPLICATES units)
  foreach(unit IN LISTS units)
    set(file ${CMAKE_CURRENT_BINARY_DIR}/${unit}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${content_of_${unit}}" @ONLY)
    list(APPEND joined ${file})
  endforeach()
  set(${variable} ${joined} PARENT_SCOPE)
endfunction()

function(lazy_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TORCH" "" "SRCS;DEPS")
  if(LAZY_UNITY)
    lazy_join_files(ARG_SRCS 1000 "")
  endif()
  add_library(${name} STATIC ${ARG_SRCS})
  target_include_directories(${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(ARG_TORCH)
    lazy_use_torch(${name})
  elseif(NOT LAZY_UNITY)
    lazy_use_common_headers(${name})
  endif()
  set_property(GLOBAL APPEND PROPERTY LAZY_LIBRARIES ${name})
endfunction()

function(lazy_program name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "TORCH" "" "SRCS;DEPS")
  list(LENGTH ARG_SRCS count)
  if(LAZY_UNITY AND count GREATER 1)
    lazy_join_files(ARG_SRCS 9 ${name}_)  # some processors' worth of a large test
  endif()
  add_executable(${name} ${ARG_SRCS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ARG_DEPS})
  if(TARGET torch_lazy_compile)
    add_dependencies(${name} torch_lazy_compile)
  endif()
  if(ARG_TORCH)
    lazy_use_torch(${name})
  endif()
endfunction()

function(lazy_test name)
  lazy_program(${name} ${ARGN})
  target_link_libraries(${name} PUBLIC GTest::gmock GTest::gtest GTest::gtest_main)
  if(LAZY_SANITIZE MATCHES thread)
    target_sources(${name} PRIVATE ${PROJECT_SOURCE_DIR}/test/tsan/abseil_mutex.cc)
    target_link_libraries(${name} PUBLIC absl::synchronization)
    target_link_options(${name} PRIVATE -rdynamic)
  endif()
  add_test(NAME ${name} COMMAND ${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600)
endfunction()

function(lazy_bench name)
  lazy_program(${name} ${ARGN})
  target_link_libraries(${name} PUBLIC benchmark::benchmark)
endfunction()
