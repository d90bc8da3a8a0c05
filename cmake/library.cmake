# libbourse: the client's library for other programs. Its rooms are inside, and only the functions of the public
# headers are seen from outside (packaging/libbourse.map).

set(library_map ${CMAKE_SOURCE_DIR}/packaging/libbourse.map)
add_library(libbourse SHARED $<TARGET_OBJECTS:consumer>)
set_target_properties(libbourse PROPERTIES
  PREFIX "" OUTPUT_NAME libbourse VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${library_map})
target_link_libraries(libbourse PRIVATE
  bourse_flags consumer_session ledger planner numeric formats runtime protocol PkgConfig::JANSSON PkgConfig::ZLIB PkgConfig::ZSTD m)
# The rooms define epoll_ctl and epoll_wait for a program of ours (runtime/hangups.h). A library must not change them for
# the programs of others, and gold would export them in spite of the map.
target_link_options(libbourse PRIVATE -Wl,--version-script=${library_map} -Wl,--exclude-libs,ALL)
add_dependencies(programs libbourse)
