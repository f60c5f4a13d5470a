# SPDX-License-Identifier: Apache-2.0
# The Python package in the build tree, and lazy_pytest(name file): one ctest test per file, run with the package.
set(LAZY_PYTHON ${PROJECT_SOURCE_DIR}/.venv/bin/python)
if(NOT EXISTS ${LAZY_PYTHON})
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(LAZY_PYTHON ${Python3_EXECUTABLE})
endif()

# A link, so that an edited file needs no build; the package finds the library in ../../lib.
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/torch_lazy ${PROJECT_BINARY_DIR}/python/torch_lazy SYMBOLIC)

function(lazy_pytest name file)
  add_test(NAME ${name} COMMAND ${LAZY_PYTHON} -m pytest -q -p no:cacheprovider ${CMAKE_CURRENT_SOURCE_DIR}/${file}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES TIMEOUT 600 ENVIRONMENT
    "PYTHONPATH=${PROJECT_BINARY_DIR}/python;PYTHONDONTWRITEBYTECODE=1;LAZY_BUILD_DIR=${PROJECT_BINARY_DIR}")
endfunction()
