# Options for code that never runs in an inner loop: compiled with little optimization, it takes a fifth less time to build.
#
# With this little optimization, g++ 12 warns about copies beyond the end of strings, and about uninitialized values
# in empty std::optional, in correct code (GCC bugs 105329 and 80635). Other configurations than Release compile the same
# code with these warnings.
set(OFFPROF_COLD_OPTIONS $<$<CONFIG:Release>:-O1>
  "$<$<AND:$<CONFIG:Release>,$<CXX_COMPILER_ID:GNU>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-maybe-uninitialized>")

# offprof_layer([SHARED name] [TORCH] [COLD] SOURCES source.cpp... DEPENDS folder... [LIBS target...]): the library of the current
# folder.
#
#   SOURCES  the folder's sources; a folder of headers alone has none
#   DEPENDS  every folder that a header or a source of this folder includes from, as its path from the root. The check `layers` of
#            scripts/lint.sh compares this list with the includes.
#   LIBS     libraries of others
#   TORCH    the folder includes LibTorch
#   COLD     none of the folder's code runs in an inner loop (OFFPROF_COLD_OPTIONS)
#   SHARED   a shared library of that name, which is opened at run time
#
# The target is offprof_ and the folder's path, with underscores: offprof_traces_base.
function(offprof_layer)
  cmake_parse_arguments(ARG "TORCH;COLD" "SHARED" "SOURCES;DEPENDS;LIBS" ${ARGN})
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
  if(ARG_COLD)
    target_compile_options(${target} PRIVATE ${OFFPROF_COLD_OPTIONS})
  endif()
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
