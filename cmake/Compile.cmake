# How everything is compiled: warnings, sanitizers, ccache, and how many files at a time.

add_library(headlab_compile INTERFACE)
# Designated initialisers name the fields that differ from their defaults: that the others are absent is their point.
target_compile_options(headlab_compile INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(headlab_compile INTERFACE -Wno-restrict)  # GCC 12 warns wrongly of `"text" + string`
endif()
if(HEADLAB_WERROR)
  target_compile_options(headlab_compile INTERFACE -Werror)
endif()
if(HEADLAB_SANITIZE)
  # vptr: the check needs type information that LibTorch keeps to itself.
  target_compile_options(headlab_compile INTERFACE
    -fsanitize=${HEADLAB_SANITIZE} -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(headlab_compile INTERFACE -fsanitize=${HEADLAB_SANITIZE})
endif()
if(CMAKE_GENERATOR MATCHES "Ninja" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(headlab_compile INTERFACE -fdiagnostics-color=auto)
endif()

# ccache: without -fpch-preprocess and this sloppiness nothing that uses a precompiled header is cached. Paths are cached
# relative to the checkout, so that a second checkout finds what the first compiled.
find_program(CCACHE_PROGRAM ccache)
if(HEADLAB_CCACHE AND CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1 "${CCACHE_PROGRAM}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(headlab_compile INTERFACE -fpch-preprocess)
  endif()
endif()

# A file that includes torch/torch.h takes up to 1.5 GB of memory to compile: as many at a time as fit.
cmake_host_system_information(RESULT memory_mb QUERY TOTAL_PHYSICAL_MEMORY)
if(EXISTS /sys/fs/cgroup/memory.max)  # a container may be allowed less than the machine has
  file(READ /sys/fs/cgroup/memory.max limit)
  string(STRIP "${limit}" limit)
  if(limit MATCHES "^[0-9]+$")
    math(EXPR limit "${limit} / 1048576")
    if(limit LESS memory_mb)
      set(memory_mb ${limit})
    endif()
  endif()
endif()
math(EXPR torch_jobs "${memory_mb} / 1500")
if(torch_jobs LESS 1)
  set(torch_jobs 1)
endif()
set_property(GLOBAL APPEND PROPERTY JOB_POOLS torch_compile=${torch_jobs})
