# Links fmt and liburing statically if OFFPROF_STATIC_LIBRARIES is on, so that a program of the build runs on machines
# that lack them.
option(OFFPROF_STATIC_LIBRARIES "Link fmt and liburing statically" OFF)

# Debian has no static fmt. Its headers contain the whole library.
if(OFFPROF_STATIC_LIBRARIES)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY=1
    INTERFACE_LINK_OPTIONS "LINKER:--as-needed")
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
