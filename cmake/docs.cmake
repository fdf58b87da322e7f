# The target `docs`: pages of the public interface by Doxygen. It fails if a public name is not
# documented. Without Doxygen there is no such target, and nothing else misses it.
find_package(Doxygen QUIET)
if(DOXYGEN_FOUND AND PROJECT_IS_TOP_LEVEL)
  add_custom_target(docs
    COMMAND ${CMAKE_COMMAND} -E make_directory "${PROJECT_BINARY_DIR}/docs"
    COMMAND ${CMAKE_COMMAND} -E env "PERDIX_DOCS=${PROJECT_BINARY_DIR}/docs"
      "${DOXYGEN_EXECUTABLE}" docs/Doxyfile
    COMMAND ${CMAKE_COMMAND} -E echo "${PROJECT_BINARY_DIR}/docs/html/index.html"
    WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
    COMMENT "Doxygen: the public interface"
    VERBATIM)
endif()
