# SPDX-License-Identifier: Apache-2.0
# libtorch_lazy.so: every folder's library, whole, in one.
#
# Whole, since nothing refers to the registrations in it; for the same reason a program that links it must not drop it
# (--no-as-needed): it is used through the device's name only.
get_property(lazy_libraries GLOBAL PROPERTY LAZY_LIBRARIES)
if(NOT TARGET lazy_device)
  return()
endif()

add_library(torch_lazy SHARED ${PROJECT_BINARY_DIR}/torch_headers.cc)
add_library(TorchLazy::torch_lazy ALIAS torch_lazy)
list(TRANSFORM lazy_libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE lazy_archives)
list(JOIN lazy_archives "," lazy_archives)
target_link_options(torch_lazy PRIVATE "LINKER:--whole-archive,${lazy_archives},--no-whole-archive")
target_link_libraries(torch_lazy PRIVATE ${lazy_libraries})
target_link_libraries(torch_lazy PUBLIC torch::cpu)
target_include_directories(torch_lazy PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/device/include>)
target_link_options(torch_lazy INTERFACE -Wl,--no-as-needed)
