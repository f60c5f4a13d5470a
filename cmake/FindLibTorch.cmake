# SPDX-License-Identifier: Apache-2.0
# LibTorch as it lies in a Python wheel or in the archive for C++ programs: the imported target torch::cpu. Used by the build and
# by the installed package.
#
# LibTorch's own TorchConfig.cmake asks for a CUDA toolkit and makes every user need libtorch_cuda. One binary must serve
# machines with and without a GPU, so only libc10 and libtorch_cpu are linked. Their own RPATH finds the CUDA libraries
# beside them. LAZY_TORCH_DIR names the folder torch/ of a wheel or libtorch/ of an archive; looked for in .venv, beside an
# installed torch_lazy, and in CMAKE_PREFIX_PATH, which may hold torch.utils.cmake_prefix_path.
set(torch_prefixes ${CMAKE_PREFIX_PATH})
list(TRANSFORM torch_prefixes REPLACE "/share/cmake/?$" "")
file(GLOB torch_in_venv ${CMAKE_CURRENT_LIST_DIR}/../.venv/lib/python3.*/site-packages/torch)
find_path(LAZY_TORCH_DIR lib/libtorch_cpu.so
  HINTS ${TORCH_INSTALL_PREFIX} ${torch_prefixes} ${torch_in_venv} ${CMAKE_CURRENT_LIST_DIR}/../../../../torch
  DOC "The folder torch/ of an installed PyTorch wheel, or libtorch/ of an archive" NO_DEFAULT_PATH)

set(LibTorch_FOUND OFF)
if(LAZY_TORCH_DIR)
  set(LibTorch_FOUND ON)
endif()

# Sets LibTorch_VERSION, and torch_gomp to PyTorch's own OpenMP runtime: a second copy in one process would mean two thread
# pools. Ends with a sentence where LibTorch does not lie as it does in wheels and archives.
macro(lazy_look_at_torch)
  file(GLOB torch_gomp ${LAZY_TORCH_DIR}/lib/libgomp*.so.1)
  set(torch_missing)
  foreach(torch_file lib/libc10.so lib/libtorch_cpu.so include/ATen/ATen.h include/torch/csrc/api/include/torch/torch.h)
    if(NOT EXISTS ${LAZY_TORCH_DIR}/${torch_file})
      list(APPEND torch_missing ${torch_file})
    endif()
  endforeach()
  if(NOT torch_gomp)
    list(APPEND torch_missing lib/libgomp.so.1)
  endif()
  # In the first of these files that is there: which one it is depends on the version.
  set(torch_version_numbers)
  foreach(torch_version_file headeronly/version.h csrc/api/include/torch/version.h)
    if(EXISTS ${LAZY_TORCH_DIR}/include/torch/${torch_version_file} AND NOT torch_version_numbers)
      foreach(part MAJOR MINOR PATCH)
        file(STRINGS ${LAZY_TORCH_DIR}/include/torch/${torch_version_file} torch_version_line REGEX "define TORCH_VERSION_${part} ")
        string(REGEX MATCH "[0-9]+" torch_version_number "${torch_version_line}")
        list(APPEND torch_version_numbers ${torch_version_number})
      endforeach()
    endif()
  endforeach()
  list(JOIN torch_version_numbers "." LibTorch_VERSION)
  if(NOT LibTorch_VERSION MATCHES "^[0-9]+\\.[0-9]+\\.[0-9]+$")
    list(APPEND torch_missing include/torch/headeronly/version.h)
  endif()
  if(torch_missing)
    list(JOIN torch_missing ", " torch_missing)
    message(FATAL_ERROR "LibTorch in ${LAZY_TORCH_DIR} has a layout that TorchLazy does not know: ${torch_missing} not found. "
                        "-DLAZY_TORCH_DIR names the folder torch/ of a PyTorch wheel, or libtorch/ of an archive.")
  endif()
endmacro()

if(LibTorch_FOUND AND NOT TARGET torch::cpu)
  lazy_look_at_torch()
  # LibTorch's C++ interface is another one in each minor version.
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor_version "${LibTorch_VERSION}")
  if(DEFINED TorchLazy_TORCH_VERSIONS)
    set(torch_known_versions ${TorchLazy_TORCH_VERSIONS})
    list(JOIN torch_known_versions ", " torch_complaint)
    set(torch_complaint "TorchLazy was built for LibTorch ${torch_complaint}")
  else()
    file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../torch_compat/versions.txt torch_known_versions)
    list(TRANSFORM torch_known_versions REPLACE "\\.[0-9]+$" "")
    list(JOIN torch_known_versions ", " torch_complaint)
    set(torch_complaint "TorchLazy is written for LibTorch ${torch_complaint}")
  endif()
  if(NOT torch_minor_version IN_LIST torch_known_versions AND NOT LAZY_ANY_TORCH)
    message(FATAL_ERROR "${torch_complaint}, and LibTorch in ${LAZY_TORCH_DIR} is ${LibTorch_VERSION}. "
                        "-DLAZY_TORCH_DIR names another one; -DLAZY_ANY_TORCH=ON tries all the same.")
  endif()

  foreach(lib c10 torch_cpu)
    add_library(torch::${lib} SHARED IMPORTED GLOBAL)
    set_target_properties(torch::${lib} PROPERTIES IMPORTED_LOCATION ${LAZY_TORCH_DIR}/lib/lib${lib}.so
                                                   IMPORTED_SONAME lib${lib}.so)
  endforeach()
  add_library(torch::gomp SHARED IMPORTED GLOBAL)
  get_filename_component(torch_gomp_name ${torch_gomp} NAME)
  set_target_properties(torch::gomp PROPERTIES IMPORTED_LOCATION ${torch_gomp} IMPORTED_SONAME ${torch_gomp_name})
  add_library(torch::cpu INTERFACE IMPORTED GLOBAL)
  target_include_directories(torch::cpu SYSTEM INTERFACE ${LAZY_TORCH_DIR}/include
                                                         ${LAZY_TORCH_DIR}/include/torch/csrc/api/include)
  target_link_libraries(torch::cpu INTERFACE torch::torch_cpu torch::c10 torch::gomp)
  target_link_options(torch::cpu INTERFACE -Wl,--allow-shlib-undefined)
  # What its headers are written in; CMake raises a program's own CXX_STANDARD to it.
  if(torch_minor_version VERSION_LESS 2.12)
    target_compile_features(torch::cpu INTERFACE cxx_std_17)
  else()
    target_compile_features(torch::cpu INTERFACE cxx_std_20)
  endif()
endif()
