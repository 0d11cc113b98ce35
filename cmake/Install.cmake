# cmake --install: the program, and the networks as a CMake package. In another project:
#   find_package(headlab REQUIRED)
#   target_link_libraries(mine PRIVATE headlab::modules)    # #include "modules/..."
include(CMakePackageConfigHelpers)

set(package_folder "${CMAKE_INSTALL_LIBDIR}/cmake/headlab")
foreach(name IN ITEMS base tensor modules)
  if(TARGET headlab_${name})
    set_target_properties(headlab_${name} PROPERTIES EXPORT_NAME ${name})
    install(TARGETS headlab_${name} EXPORT headlab-targets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
endforeach()
install(DIRECTORY modules DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/headlab" FILES_MATCHING PATTERN "*.h")
install(EXPORT headlab-targets NAMESPACE headlab:: DESTINATION "${package_folder}")
configure_package_config_file(cmake/headlab-config.cmake.in "${PROJECT_BINARY_DIR}/headlab-config.cmake"
                              INSTALL_DESTINATION "${package_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/headlab-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/headlab-config.cmake" "${PROJECT_BINARY_DIR}/headlab-config-version.cmake"
              cmake/LibTorch.cmake
        DESTINATION "${package_folder}")
if(TARGET headlab)  # finds LibTorch where it was found when building, also in .deps of the checkout
  set_target_properties(headlab PROPERTIES INSTALL_RPATH "${HEADLAB_LIBTORCH}/lib")
  install(TARGETS headlab RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
