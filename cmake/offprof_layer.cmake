# offprof_layer([SHARED name] [TORCH] SOURCES source.cpp... DEPENDS folder... [LIBS target...]): the library of the current
# folder.
#
#   SOURCES  the folder's sources; a folder of headers alone has none
#   DEPENDS  every folder that a header or a source of this folder includes from, as its path from the root. The check `layers` of
#            scripts/lint.sh compares this list with the includes.
#   LIBS     libraries of others
#   TORCH    the folder includes LibTorch
#   SHARED   a shared library of that name, which is opened at run time
#
# The target is offprof_ and the folder's path, with underscores: offprof_traces_base.
function(offprof_layer)
  cmake_parse_arguments(ARG "TORCH" "SHARED" "SOURCES;DEPENDS;LIBS" ${ARGN})
  offprof_layer_target(target "${CMAKE_CURRENT_SOURCE_DIR}")
  set(libs offprof_compile_options)
  foreach(folder IN LISTS ARG_DEPENDS)
    offprof_layer_target(dependency "${CMAKE_SOURCE_DIR}/${folder}")
    list(APPEND libs ${dependency})
  endforeach()
  if(ARG_TORCH)
    list(APPEND libs offprof_libtorch)
  endif()
  if(NOT ARG_SOURCES)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${libs} ${ARG_LIBS})
    return()
  endif()
  if(ARG_SHARED)
    set(target ${ARG_SHARED})
    add_library(${target} SHARED ${ARG_SOURCES})
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden)
  else()
    add_library(${target} STATIC ${ARG_SOURCES})
  endif()
  target_link_libraries(${target} PUBLIC ${libs} ${ARG_LIBS})
  if(ARG_TORCH)
    target_precompile_headers(${target} REUSE_FROM offprof_torch_precompiled)
  endif()
endfunction()

# Sets `out` to the target of the library in the folder.
function(offprof_layer_target out folder)
  file(RELATIVE_PATH path "${CMAKE_SOURCE_DIR}" "${folder}")
  string(REPLACE "/" "_" name "${path}")
  set(${out} "offprof_${name}" PARENT_SCOPE)
endfunction()
