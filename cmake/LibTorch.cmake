# Finds LibTorch without find_package(Torch), which asks for a CUDA toolkit whenever LibTorch was built with CUDA.
#
# Looked for in this order; what is named explicitly must be right, what is found by looking is skipped if unfit:
#   -DLIBTORCH=<folder>   environment LIBTORCH   Torch_DIR (variable, environment)
#   the Python of HEADLAB_PYTHON, .deps/venv, python3, python (the torch package inside is LibTorch; it is not imported)
#
# Result: the targets headlab_torch and torch_<library>, and the variables HEADLAB_LIBTORCH (the folder),
# HEADLAB_LIBTORCH_VERSION (2.13.0) and HEADLAB_LIBTORCH_KIND (cpu, cuda, hip).
# Installed with headlab and included by headlab-config.cmake, so that its users find LibTorch the same way; as a script
# (cmake -P cmake/LibTorch.cmake) it only prints what it found.

cmake_policy(VERSION 3.22)
set(HEADLAB_LIBTORCH_MINIMUM 2.11)

# The version of the LibTorch in `folder`, or a reason why it is none that can be used.
function(headlab_inspect_libtorch folder version reason)
  set(${version} "" PARENT_SCOPE)
  set(${reason} "" PARENT_SCOPE)
  foreach(part IN ITEMS include/torch/csrc/api/include/torch/torch.h lib/libtorch_cpu.so lib/libc10.so
                        share/cmake/Torch/TorchConfigVersion.cmake)
    if(NOT EXISTS "${folder}/${part}")
      set(${reason} "${folder} is no LibTorch: it has no ${part}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  file(STRINGS "${folder}/share/cmake/Torch/TorchConfigVersion.cmake" line REGEX "set\\(PACKAGE_VERSION ")
  string(REGEX MATCH "[0-9]+(\\.[0-9]+)+" found "${line}")
  set(${version} "${found}" PARENT_SCOPE)
  if(found VERSION_LESS HEADLAB_LIBTORCH_MINIMUM)
    set(${reason} "${folder} is LibTorch ${found}; headlab needs ${HEADLAB_LIBTORCH_MINIMUM} or newer" PARENT_SCOPE)
  endif()
endfunction()

# Sets HEADLAB_LIBTORCH and HEADLAB_LIBTORCH_VERSION in the caller, or stops with what was tried.
function(headlab_find_libtorch)
  set(explicit "")
  if(LIBTORCH)
    set(explicit "${LIBTORCH}")
  elseif(DEFINED ENV{LIBTORCH} AND NOT "$ENV{LIBTORCH}" STREQUAL "")
    set(explicit "$ENV{LIBTORCH}")
  elseif(Torch_DIR)
    get_filename_component(explicit "${Torch_DIR}/../../.." ABSOLUTE)
  elseif(DEFINED ENV{Torch_DIR} AND NOT "$ENV{Torch_DIR}" STREQUAL "")
    get_filename_component(explicit "$ENV{Torch_DIR}/../../.." ABSOLUTE)
  endif()

  set(tried "")
  if(explicit)
    get_filename_component(explicit "${explicit}" ABSOLUTE)
    headlab_inspect_libtorch("${explicit}" version reason)
    if(reason)
      message(FATAL_ERROR "${reason}.\nIt was named by LIBTORCH or Torch_DIR: mend that, or leave both empty to look elsewhere.")
    endif()
    set(HEADLAB_LIBTORCH "${explicit}" PARENT_SCOPE)
    set(HEADLAB_LIBTORCH_VERSION "${version}" PARENT_SCOPE)
    return()
  endif()

  if(HEADLAB_LIBTORCH_HINT)  # an installed headlab: the LibTorch it was built with
    headlab_inspect_libtorch("${HEADLAB_LIBTORCH_HINT}" version reason)
    if(NOT reason)
      set(HEADLAB_LIBTORCH "${HEADLAB_LIBTORCH_HINT}" PARENT_SCOPE)
      set(HEADLAB_LIBTORCH_VERSION "${version}" PARENT_SCOPE)
      return()
    endif()
    list(APPEND tried "${reason}")
  endif()

  foreach(python IN ITEMS "$ENV{HEADLAB_PYTHON}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.deps/venv/bin/python" python3 python)
    if("${python}" STREQUAL "")
      continue()
    endif()
    set(look "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')")
    execute_process(COMMAND "${python}" -c "${look}" OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE
                    ERROR_QUIET RESULT_VARIABLE failed WORKING_DIRECTORY /)
    if(failed OR "${folder}" STREQUAL "")
      list(APPEND tried "${python}: no torch package")
      continue()
    endif()
    headlab_inspect_libtorch("${folder}" version reason)
    if(reason)
      list(APPEND tried "${python}: ${reason}")
      continue()
    endif()
    set(HEADLAB_LIBTORCH "${folder}" PARENT_SCOPE)
    set(HEADLAB_LIBTORCH_VERSION "${version}" PARENT_SCOPE)
    return()
  endforeach()
  list(JOIN tried "\n  " tried)
  message(FATAL_ERROR "LibTorch ${HEADLAB_LIBTORCH_MINIMUM} or newer was not found. Looked at:\n  ${tried}\n"
          "Give its folder by -DLIBTORCH=<folder> or the environment variable LIBTORCH, install a Python torch, "
          "or let tools/headlab install one into .deps/venv.")
endfunction()

# Reads HEADLAB_LIBTORCH_KIND off the libraries that are there.
function(headlab_libtorch_kind)
  set(HEADLAB_LIBTORCH_KIND cpu PARENT_SCOPE)
  foreach(kind IN ITEMS cuda hip)
    if(EXISTS "${HEADLAB_LIBTORCH}/lib/libtorch_${kind}.so")
      set(HEADLAB_LIBTORCH_KIND ${kind} PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# The targets: torch_<name> for each library of LibTorch that is there, and headlab_torch, which needs them all.
function(headlab_import_libtorch)
  find_package(Threads REQUIRED)
  set(libraries "")
  foreach(name IN ITEMS torch_cpu torch_cuda torch_hip torch c10_cuda c10_hip c10)
    set(file "${HEADLAB_LIBTORCH}/lib/lib${name}.so")
    if(EXISTS "${file}")
      add_library(torch_${name} SHARED IMPORTED GLOBAL)
      set_target_properties(torch_${name} PROPERTIES IMPORTED_LOCATION "${file}")
      list(APPEND libraries torch_${name})
    endif()
  endforeach()

  # The C++ standard library's ABI must be that of the LibTorch found: old builds of it have 0.
  set(abi 1)
  set(config "${HEADLAB_LIBTORCH}/share/cmake/Torch/TorchConfig.cmake")
  if(EXISTS "${config}")
    file(STRINGS "${config}" line REGEX "_GLIBCXX_USE_CXX11_ABI=0")
    if(line)
      set(abi 0)
    endif()
  endif()

  add_library(headlab_torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(headlab_torch SYSTEM INTERFACE
    "${HEADLAB_LIBTORCH}/include" "${HEADLAB_LIBTORCH}/include/torch/csrc/api/include")
  target_compile_definitions(headlab_torch INTERFACE _GLIBCXX_USE_CXX11_ABI=${abi})
  # LibTorch registers its kernels when its libraries are loaded: they must stay linked though no symbol asks for them.
  # Its own libraries (CUDA's among them) are found by their own run paths, so their symbols are not looked up here.
  target_link_options(headlab_torch INTERFACE -Wl,--no-as-needed -Wl,--allow-shlib-undefined)
  target_link_libraries(headlab_torch INTERFACE ${libraries} Threads::Threads)
endfunction()

if(NOT TARGET headlab_torch)
  headlab_find_libtorch()
  headlab_libtorch_kind()
  message(STATUS "LibTorch ${HEADLAB_LIBTORCH_VERSION} (${HEADLAB_LIBTORCH_KIND}): ${HEADLAB_LIBTORCH}")
  if(NOT CMAKE_SCRIPT_MODE_FILE)
    headlab_import_libtorch()
  endif()
endif()
