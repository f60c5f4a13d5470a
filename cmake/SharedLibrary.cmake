# SPDX-License-Identifier: Apache-2.0
# libtorch_lazy.so: every folder's library, whole, in one; and what `cmake --install` puts where.
#
# Whole, since nothing refers to the registrations in it; for the same reason a program that links it must not drop it
# (--no-as-needed): it is used through the device's name only.
if(NOT TARGET lazy_device)
  return()
endif()
# Exports what cmake/exports.map says, and has its table of imports closed to writing once it is loaded.
function(lazy_harden library)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(${library} PRIVATE LINKER:--version-script=${exports} LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
  set_property(TARGET ${library} APPEND PROPERTY LINK_DEPENDS ${exports})
endfunction()

get_property(lazy_libraries GLOBAL PROPERTY LAZY_LIBRARIES)
list(TRANSFORM lazy_libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE lazy_archives)
list(JOIN lazy_archives "," lazy_archives)

add_library(torch_lazy SHARED ${PROJECT_BINARY_DIR}/torch_headers.cc)
add_library(TorchLazy::torch_lazy ALIAS torch_lazy)
target_link_options(torch_lazy PRIVATE "LINKER:--whole-archive,${lazy_archives},--no-whole-archive")
lazy_harden(torch_lazy)
lazy_for_old_linux(torch_lazy)
target_link_libraries(torch_lazy PRIVATE ${lazy_libraries} PUBLIC torch::cpu)
target_include_directories(torch_lazy PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/device/include>)
target_link_options(torch_lazy INTERFACE -Wl,--no-as-needed)

# libtorch_lazy_cuda.so: what needs PyTorch's CUDA libraries. Ours opens it where CUDA works; it needs headers alone.
find_path(LAZY_CUDA_INCLUDE cublasLt.h
  HINTS ${LAZY_TORCH_DIR}/../nvidia/cu13/include ${LAZY_TORCH_DIR}/../nvidia/cuda_runtime/include /usr/local/cuda/include)
# A library serves one minor version of LibTorch; a package may have several, in folders of their own.
string(REGEX MATCH "^[0-9]+\\.[0-9]+" installed "${LibTorch_VERSION}")
set(installed lib/torch-${installed})
# What is installed is stripped: what follows in the script of `cmake --install` asks for this variable.
install(CODE "set(CMAKE_INSTALL_DO_STRIP TRUE)")
if(LAZY_CUDA_INCLUDE AND EXISTS ${LAZY_TORCH_DIR}/lib/libtorch_cuda.so)
  file(GLOB cuda_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/lazy/cuda/library/*.cc)
  add_library(torch_lazy_cuda SHARED ${cuda_sources})
  target_include_directories(torch_lazy_cuda PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(torch_lazy_cuda SYSTEM PRIVATE ${LAZY_CUDA_INCLUDE})
  target_link_libraries(torch_lazy_cuda PRIVATE torch::cpu ${LAZY_TORCH_DIR}/lib/libtorch_cuda.so ${LAZY_TORCH_DIR}/lib/libc10_cuda.so)
  lazy_harden(torch_lazy_cuda)
  lazy_for_old_linux(torch_lazy_cuda ALLOW_UNDEFINED)  # CUDA's runtime is there
  target_link_options(torch_lazy_cuda PRIVATE -Wl,--disable-new-dtags)
  set_target_properties(torch_lazy_cuda PROPERTIES INSTALL_RPATH "$ORIGIN:$ORIGIN/../../../torch/lib")
  add_dependencies(torch_lazy torch_lazy_cuda)
  install(TARGETS torch_lazy_cuda LIBRARY DESTINATION ${installed})
endif()

# Installed, the library finds Abseil beside itself, if that is not in it, and PyTorch where pip puts it:
# site-packages/torch_lazy/lib/torch-2.NN is three folders away from site-packages/torch. Elsewhere the program that uses the
# device has loaded PyTorch already. RPATH, not RUNPATH (--disable-new-dtags), since Abseil's libraries need each other.
target_link_options(torch_lazy PRIVATE -Wl,--disable-new-dtags)
set_target_properties(torch_lazy PROPERTIES INSTALL_RPATH "$ORIGIN:$ORIGIN/../../../torch/lib")
if(absl_FOUND)
  set(with_abseil RUNTIME_DEPENDENCIES PRE_EXCLUDE_REGEXES "." PRE_INCLUDE_REGEXES "libabsl_")
endif()
install(TARGETS torch_lazy ${with_abseil} LIBRARY DESTINATION ${installed})
install(TARGETS torch_lazy_compile RUNTIME DESTINATION ${installed})
add_dependencies(torch_lazy torch_lazy_compile)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/device/include/torch_lazy DESTINATION include)
# The version of LibTorch, beside the library, for who loads that from the build: the Python package.
file(WRITE ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/libtorch_lazy.torch_version "${LibTorch_VERSION}\n")
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/TorchLazyConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/TorchLazyConfigVersion.cmake cmake/TorchLazyConfig.cmake cmake/FindLibTorch.cmake
        DESTINATION lib/cmake/TorchLazy)
