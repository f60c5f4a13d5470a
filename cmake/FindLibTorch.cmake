# SPDX-License-Identifier: Apache-2.0
# LibTorch as it lies in a Python wheel: the imported target torch::cpu. Used by the build and by the installed package.
#
# The wheel's own TorchConfig.cmake asks for a CUDA toolkit and makes every user need libtorch_cuda. One binary must serve
# machines with and without a GPU, so only libc10 and libtorch_cpu are linked. Their own RPATH finds the CUDA libraries
# beside them. LAZY_TORCH_DIR names the folder torch/; looked for in .venv, beside an installed torch_lazy, and in
# CMAKE_PREFIX_PATH, which may hold torch.utils.cmake_prefix_path.
set(torch_prefixes ${CMAKE_PREFIX_PATH})
list(TRANSFORM torch_prefixes REPLACE "/share/cmake/?$" "")
file(GLOB torch_in_venv ${CMAKE_CURRENT_LIST_DIR}/../.venv/lib/python3.*/site-packages/torch)
find_path(LAZY_TORCH_DIR lib/libtorch_cpu.so
  HINTS ${TORCH_INSTALL_PREFIX} ${torch_prefixes} ${torch_in_venv} ${CMAKE_CURRENT_LIST_DIR}/../../../../torch
  DOC "The folder torch/ of an installed PyTorch wheel" NO_DEFAULT_PATH)

set(LibTorch_FOUND OFF)
if(LAZY_TORCH_DIR)
  set(LibTorch_FOUND ON)
endif()

if(LibTorch_FOUND AND NOT TARGET torch::cpu)
  file(STRINGS ${LAZY_TORCH_DIR}/version.py torch_version_line REGEX "^__version__")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" LibTorch_VERSION "${torch_version_line}")
  if(LibTorch_VERSION VERSION_LESS 2.11)
    message(FATAL_ERROR "LibTorch ${LibTorch_VERSION} in ${LAZY_TORCH_DIR} is too old: at least 2.11 is needed")
  endif()

  foreach(lib c10 torch_cpu)
    add_library(torch::${lib} SHARED IMPORTED GLOBAL)
    set_target_properties(torch::${lib} PROPERTIES IMPORTED_LOCATION ${LAZY_TORCH_DIR}/lib/lib${lib}.so
                                                   IMPORTED_SONAME lib${lib}.so)
  endforeach()
  # PyTorch's own OpenMP runtime: a second copy in one process would mean two thread pools.
  add_library(torch::gomp SHARED IMPORTED GLOBAL)
  set_target_properties(torch::gomp PROPERTIES IMPORTED_LOCATION ${LAZY_TORCH_DIR}/lib/libgomp.so.1
                                               IMPORTED_SONAME libgomp.so.1)
  add_library(torch::cpu INTERFACE IMPORTED GLOBAL)
  target_include_directories(torch::cpu SYSTEM INTERFACE ${LAZY_TORCH_DIR}/include
                                                         ${LAZY_TORCH_DIR}/include/torch/csrc/api/include)
  target_link_libraries(torch::cpu INTERFACE torch::torch_cpu torch::c10 torch::gomp)
  target_link_options(torch::cpu INTERFACE -Wl,--allow-shlib-undefined)
endif()
