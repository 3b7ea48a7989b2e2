# Links fmt and liburing statically if OFFPROF_STATIC_LIBRARIES is on, so that a program of the build runs on machines
# that lack them.
option(OFFPROF_STATIC_LIBRARIES "Link fmt and liburing statically" OFF)

# Debian has no static fmt. Its headers contain the whole library, which one source compiles. (With FMT_HEADER_ONLY
# every source would, and none would be the same as in the other flavour, where ccache finds it.)
if(OFFPROF_STATIC_LIBRARIES)
  add_library(offprof_fmt STATIC "${CMAKE_CURRENT_LIST_DIR}/static_fmt.cpp")
  set_target_properties(offprof_fmt PROPERTIES UNITY_BUILD OFF POSITION_INDEPENDENT_CODE ON
    ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  set(fmt_library "${CMAKE_BINARY_DIR}/liboffprof_fmt.a")
  set_target_properties(fmt::fmt PROPERTIES IMPORTED_LOCATION "${fmt_library}" IMPORTED_LOCATION_NONE "${fmt_library}")
endif()

# offprof_link_statically(TARGET LIBRARY): makes an imported target link libLIBRARY.a.
function(offprof_link_statically target library)
  if(NOT OFFPROF_STATIC_LIBRARIES)
    return()
  endif()
  find_library(offprof_static_${library} NAMES lib${library}.a)
  if(NOT offprof_static_${library})
    message(FATAL_ERROR "OFFPROF_STATIC_LIBRARIES is on, but there is no lib${library}.a. "
      "Install it (scripts/setup.sh), or configure with -DOFFPROF_STATIC_LIBRARIES=OFF")
  endif()
  mark_as_advanced(offprof_static_${library})
  set_target_properties(${target} PROPERTIES IMPORTED_LOCATION "${offprof_static_${library}}")
endfunction()
