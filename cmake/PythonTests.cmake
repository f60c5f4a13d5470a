# SPDX-License-Identifier: Apache-2.0
# The Python package in the build tree, and tests that run with it: lazy_pytest(name file [environment]), one ctest test per file, and
# lazy_check(name [FULL] file argument...) for a program of its own that keeps two processors busy. What is FULL runs in
# `make test-full` alone.
# The interpreter of the environment that LibTorch lies in: the library serves no other version.
get_filename_component(torch_environment "${LAZY_TORCH_DIR}/../../../.." ABSOLUTE)
set(LAZY_PYTHON ${torch_environment}/bin/python)
if(NOT EXISTS ${LAZY_PYTHON})
  set(LAZY_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python)
endif()
if(NOT EXISTS ${LAZY_PYTHON})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(LAZY_PYTHON ${Python3_EXECUTABLE})
endif()

# A link, so that an edited file needs no build; the package finds the library in ../../lib.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python)
file(RELATIVE_PATH package ${PROJECT_BINARY_DIR}/python ${PROJECT_SOURCE_DIR}/python/torch_lazy)
file(CREATE_LINK ${package} ${PROJECT_BINARY_DIR}/python/torch_lazy SYMBOLIC)

function(lazy_pytest name file)  # ARGN: more environment
  add_test(NAME ${name} COMMAND ${LAZY_PYTHON} -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/${file}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;LAZY_BUILD_DIR=${PROJECT_BINARY_DIR};${ARGN}")
endfunction()

function(lazy_check name)
  cmake_parse_arguments(PARSE_ARGV 1 check FULL "" "")
  list(POP_FRONT check_UNPARSED_ARGUMENTS file)
  add_test(NAME ${name} COMMAND ${LAZY_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${check_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES PROCESSORS 2 ENVIRONMENT
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;LAZY_BUILD_DIR=${PROJECT_BINARY_DIR}")
  if(check_FULL)
    set_tests_properties(${name} PROPERTIES LABELS full TIMEOUT 20000)
  else()
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200)
  endif()
endfunction()
