# What `cmake --install` puts where: public headers, the library, and its description for CMake and
# for pkg-config. Both descriptions are relocatable, so `cmake --install --prefix` works.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/perdix")

# Without the headers of engines that are not built; perdix.h includes the others.
set(left_out ${PERDIX_ALL_ENGINES})
list(REMOVE_ITEM left_out ${PERDIX_CHOSEN_ENGINES})
list(JOIN left_out "|" left_out)
file(READ "${PROJECT_SOURCE_DIR}/include/perdix/perdix.h" umbrella)
if(left_out)
  string(REGEX REPLACE "#include <perdix/(${left_out})\\.h>\n" "" umbrella "${umbrella}")
endif()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/perdix/perdix.h" CONTENT "${umbrella}" @ONLY)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/include/perdix" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*.h"
  # plugins/ installs tips_indexes.h
  REGEX "/perdix/((perdix|(papers/)?(${left_out}))(_c|_type)?|tips_indexes(_c)?)\\.h$" EXCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/generated/perdix/perdix.h"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/perdix")
install(TARGETS perdix EXPORT perdixTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")

install(EXPORT perdixTargets NAMESPACE perdix:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/perdixConfig.cmake.in perdixConfig.cmake
  INSTALL_DESTINATION "${package_dir}")
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(perdixConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  "${PROJECT_BINARY_DIR}/perdixConfig.cmake" "${PROJECT_BINARY_DIR}/perdixConfigVersion.cmake"
  DESTINATION "${package_dir}")

# A program that links the static library needs what the library is made of; `Requires` names it, so
# that users need no `pkg-config --static`.
if(BUILD_SHARED_LIBS)
  set(pc_requires "Requires.private")
else()
  set(pc_requires "Requires")
endif()
file(RELATIVE_PATH pc_prefix
  "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/perdix.pc.in perdix.pc @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/perdix.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
