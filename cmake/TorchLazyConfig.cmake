# SPDX-License-Identifier: Apache-2.0
# find_package(TorchLazy CONFIG): the target TorchLazy::torch_lazy. It brings LibTorch's CPU libraries and headers.
# Pass -DCMAKE_PREFIX_PATH=<torch.utils.cmake_prefix_path> or -DLAZY_TORCH_DIR=<site-packages>/torch if LibTorch is not found.
# lib/torch-2.NN has the library for LibTorch 2.NN; a package may have several.
get_filename_component(torch_lazy_prefix ${CMAKE_CURRENT_LIST_DIR}/../../.. ABSOLUTE)
file(GLOB TorchLazy_TORCH_VERSIONS RELATIVE ${torch_lazy_prefix}/lib ${torch_lazy_prefix}/lib/torch-*)
list(TRANSFORM TorchLazy_TORCH_VERSIONS REPLACE "^torch-" "")
include(${CMAKE_CURRENT_LIST_DIR}/FindLibTorch.cmake)
if(NOT LibTorch_FOUND)
  set(TorchLazy_FOUND FALSE)
  set(TorchLazy_NOT_FOUND_MESSAGE "LibTorch not found: pass -DLAZY_TORCH_DIR=<site-packages>/torch")
  return()
endif()

if(NOT TARGET TorchLazy::torch_lazy)
  add_library(TorchLazy::torch_lazy SHARED IMPORTED)
  set_target_properties(TorchLazy::torch_lazy PROPERTIES
    IMPORTED_LOCATION ${torch_lazy_prefix}/lib/torch-${torch_minor_version}/libtorch_lazy.so
    IMPORTED_SONAME libtorch_lazy.so
    INTERFACE_INCLUDE_DIRECTORIES ${torch_lazy_prefix}/include)
  target_link_libraries(TorchLazy::torch_lazy INTERFACE torch::cpu)
  # A program names nothing in the library: without this the linker would drop it, and the device with it.
  target_link_options(TorchLazy::torch_lazy INTERFACE -Wl,--no-as-needed)
endif()
