# SPDX-License-Identifier: Apache-2.0
# Language level, warnings, build types, output folders, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "RelWithDebInfo, Release or Debug" FORCE)
endif()
# -g1 keeps line tables, for stack traces, at a tenth of the size of full debug information.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")  # the same code
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
add_compile_options(-Wall -Wextra)
# Warnings are errors with Debian 12's compilers: what another one warns of stops nobody's build.
if("${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" MATCHES "^(GNU 12|Clang 14)\\.")
  add_compile_options(-Werror)
endif()
# Nobody puts a function of his own in the place of one of ours, so calls among ours need no table.
add_compile_options($<$<CXX_COMPILER_ID:GNU>:-fno-semantic-interposition>)

# Folders of this machine are nobody's business: checks that fail name their file from the project's root on, or from the
# compiler's own folders on. Of several that fit, the compiler takes the one that comes last.
function(lazy_hide_folder folder name)
  add_compile_options(-fmacro-prefix-map=${folder}/=${name})
endfunction()
lazy_hide_folder(${PROJECT_SOURCE_DIR} "")
lazy_hide_folder(${PROJECT_BINARY_DIR} build/)

set(LAZY_SANITIZE "" CACHE STRING "Sanitizers of this build, for instance address,undefined")
if(LAZY_SANITIZE)
  add_compile_options(-fsanitize=${LAZY_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${LAZY_SANITIZE})
endif()

# ccache takes precompiled headers only when told to trust their times and defines. What an object holds does not depend
# on which folders are hidden.
find_program(LAZY_CCACHE ccache)
if(LAZY_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_IGNOREOPTIONS=-fmacro-prefix-map=* ${LAZY_CCACHE})
endif()
