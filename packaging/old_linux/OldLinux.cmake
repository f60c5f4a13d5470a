# SPDX-License-Identifier: Apache-2.0
# lazy_for_old_linux(target [ALLOW_UNDEFINED]): with -DLAZY_OLD_LINUX=ON, the target runs where glibc 2.28 and GCC 8's libstdc++ are (manylinux_2_28).
#
# It is linked with stubs of the system's libraries, which have the names of those versions (stubs.py). What is missing
# comes from libstdc++.a and shims.cc; what neither has is an undefined name, and the linker names it. ALLOW_UNDEFINED is for a
# library whose names others in the process have.
option(LAZY_OLD_LINUX "Make what runs on systems with glibc 2.28 and newer" OFF)

function(lazy_make_stub name limit)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${name} OUTPUT_VARIABLE library OUTPUT_STRIP_TRAILING_WHITESPACE
                  COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/packaging/old_linux/stubs.py ${library} ${limit} ${name}.s ${name}.map
                  WORKING_DIRECTORY ${stubs} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -shared -nostdlib -Wl,-soname,${name} -Wl,--version-script=${name}.map ${name}.s -o ${name}
                  WORKING_DIRECTORY ${stubs} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# What -l finds under this name: a script that names files.
function(lazy_stub_script name)
  list(JOIN ARGN " " files)
  file(WRITE ${stubs}/${name} "INPUT ( ${files} )\n")
endfunction()

if(LAZY_OLD_LINUX)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(stubs ${PROJECT_BINARY_DIR}/old_linux)
  file(MAKE_DIRECTORY ${stubs})
  lazy_make_stub(libc.so.6 GLIBC_2.28)
  lazy_make_stub(libm.so.6 GLIBC_2.28)
  lazy_make_stub(libstdc++.so.6 GLIBCXX_3.4.24,CXXABI_1.3.11)
  foreach(archive libc_nonshared.a libstdc++.a)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=${archive} OUTPUT_VARIABLE ${archive} OUTPUT_STRIP_TRAILING_WHITESPACE)
  endforeach()
  # What is to be linked statically first: the stub also has names of the past.
  lazy_stub_script(libc.so ${libc_nonshared.a} ${stubs}/libc.so.6 "AS_NEEDED ( -l:ld-linux-x86-64.so.2 )")
  lazy_stub_script(libm.so ${stubs}/libm.so.6)
  lazy_stub_script(libstdc++.so ${stubs}/libstdc++.so.6 ${libstdc++.a})
  add_library(lazy_old_linux OBJECT packaging/old_linux/shims.cc)
  add_library(lazy_old_linux_start OBJECT packaging/old_linux/start.cc)
endif()

function(lazy_for_old_linux target)
  if(LAZY_OLD_LINUX)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:lazy_old_linux>)
    # Of two that have a name, the first gives it: LibTorch's libraries export some names of libstdc++.a.
    # Names of dlopen and threads were in libraries of their own.
    target_link_options(${target} PRIVATE -L${PROJECT_BINARY_DIR}/old_linux -lstdc++ -Wl,--allow-shlib-undefined
                        -Wl,--push-state,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0 -Wl,--pop-state)
    if(NOT ARGN STREQUAL ALLOW_UNDEFINED)
      target_link_options(${target} PRIVATE -Wl,--no-undefined)
    endif()
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      target_sources(${target} PRIVATE $<TARGET_OBJECTS:lazy_old_linux_start>)
      target_link_options(${target} PRIVATE -Wl,--wrap=__libc_start_main -Wl,--exclude-libs,ALL)
    endif()
  endif()
endfunction()
