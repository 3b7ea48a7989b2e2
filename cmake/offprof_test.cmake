# Builds and registers test programs. Each is one CTest entry, or several shards, because LibTorch takes a second to
# start. Each entry writes the results of its cases to test_reports/ENTRY.xml in the build folder; scripts/test.sh
# reads them. To run a single case: `build/tests/PROGRAM --gtest_filter=SUITE.CASE`.

# Property tests link rapidcheck_gtest. Each run prints its seed; RC_PARAMS="seed=..." repeats it.
find_package(rapidcheck REQUIRED)

# offprof_add_test(NAME entry COMMAND ...): add_test, with a core to itself. The threads of one `host` run wait for each
# other thousands of times. On cores that another test computes on, each of these waits takes a time slice: two runs at a
# time then took up to five times as long as one. CTest's PROCESSOR_AFFINITY does nothing in Debian's CTest, whose libuv
# cannot set the cores of a process.
function(offprof_add_test)
  cmake_parse_arguments(ARG "" "NAME" "COMMAND" ${ARGN})
  list(POP_FRONT ARG_COMMAND program)
  if(TARGET "${program}")
    set(program "$<TARGET_FILE:${program}>")
  endif()
  add_test(NAME "${ARG_NAME}"
    COMMAND "${CMAKE_SOURCE_DIR}/tests/support/on_own_core.sh" "${CMAKE_BINARY_DIR}/test_cores" "${program}" ${ARG_COMMAND})
endfunction()

set(OFFPROF_TEST_REPORTS "${CMAKE_BINARY_DIR}/test_reports")
set(OFFPROF_CUDA_CASES_SCRIPT "${CMAKE_CURRENT_LIST_DIR}/cuda_cases.cmake")

# Tests are cold code. All have the same options, so that they can share a precompiled header.
set(OFFPROF_TEST_OPTIONS -fPIC ${OFFPROF_COLD_OPTIONS})

# offprof_precompiled(NAME LIBS lib... HEADERS header...): compiles headers once for all test programs.
function(offprof_precompiled name)
  cmake_parse_arguments(ARG "" "" "LIBS;HEADERS" ${ARGN})
  set(source "${CMAKE_BINARY_DIR}/tests/${name}.cpp")
  file(CONFIGURE OUTPUT "${source}" CONTENT "")
  add_library(${name} OBJECT "${source}")
  target_link_libraries(${name} PRIVATE offprof_compile_options ${ARG_LIBS})
  target_compile_options(${name} PRIVATE ${OFFPROF_TEST_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

offprof_precompiled(offprof_precompiled_test LIBS GTest::gmock
  HEADERS <gmock/gmock.h> <gtest/gtest.h> <algorithm> <filesystem> <functional> <map> <optional> <string> <vector>)
if(OFFPROF_WITH_ENGINE)
  offprof_precompiled(offprof_precompiled_torch_test LIBS offprof_libtorch GTest::gmock
    HEADERS "${CMAKE_CURRENT_LIST_DIR}/../engine/torch/torch_precompiled.h" <gmock/gmock.h> <gtest/gtest.h>)
endif()

# `main` for test programs that do not have their own.
add_library(offprof_test_main STATIC "${CMAKE_CURRENT_LIST_DIR}/../tests/support/run_tests.cpp"
  "${CMAKE_CURRENT_LIST_DIR}/../tests/support/main.cpp")
target_link_libraries(offprof_test_main PUBLIC offprof_compile_options GTest::gmock)
# In a unity build, a program that uses run_tests would link this `main` as well.
set_target_properties(offprof_test_main PROPERTIES UNITY_BUILD OFF)

# offprof_compile_test(TARGET TORCH): compiles the target's sources as tests. TORCH: true if they include
# LibTorch.
function(offprof_compile_test target torch)
  # Tests have helpers of the same name, so their sources cannot be joined.
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE ${OFFPROF_TEST_OPTIONS})
  if(torch)
    target_precompile_headers(${target} REUSE_FROM offprof_precompiled_torch_test)
  else()
    target_precompile_headers(${target} REUSE_FROM offprof_precompiled_test)
  endif()
endfunction()

# offprof_test_paths(SOURCE NAME="path"...): defines macros with paths of this tree for one source file. The other files of
# its program keep the same options in every tree, so that ccache can reuse their objects.
function(offprof_test_paths source)
  set_property(SOURCE ${source} APPEND PROPERTY COMPILE_DEFINITIONS ${ARGN})
endfunction()

# offprof_test(NAME file_test.cpp... LIBS lib... [TORCH] [FILTER cases] [SHARDS n] [COST seconds]): adds a test
# program, whose cases run as one CTest entry, or as SHARDS entries of about the same size.
#   TORCH   the sources include LibTorch
#   FILTER  runs only these cases
#   COST    approximate duration of an entry: CTest starts the longest first
function(offprof_test name)
  cmake_parse_arguments(ARG "TORCH" "FILTER;SHARDS;COST" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE offprof_compile_options ${ARG_LIBS} offprof_test_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  offprof_compile_test(${name} ${ARG_TORCH})
  if(NOT ARG_SHARDS)
    set(ARG_SHARDS 1)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 1)
  endif()
  math(EXPR last "${ARG_SHARDS} - 1")
  foreach(shard RANGE ${last})
    set(entry ${name})
    if(ARG_SHARDS GREATER 1)
      math(EXPR number "${shard} + 1")
      set(entry ${name}.${number}_of_${ARG_SHARDS})
    endif()
    set(command ${name} --gtest_brief=1 "--gtest_output=xml:${OFFPROF_TEST_REPORTS}/${entry}.xml")
    if(ARG_FILTER)
      list(APPEND command "--gtest_filter=${ARG_FILTER}")
    endif()
    offprof_add_test(NAME ${entry} COMMAND ${command})
    set_tests_properties(${entry} PROPERTIES COST ${ARG_COST}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${shard}")
  endforeach()
endfunction()

# offprof_device_test(...): adds a test program like offprof_test with TORCH, for programs that create devices.
function(offprof_device_test name)
  offprof_test(${name} TORCH ${ARGN})
  # The program must be in the folder of the CUDA library that it opens.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  add_dependencies(${name} offprof_cuda)
endfunction()

# offprof_test_objects(NAME file.cpp... LIBS lib...): compiles sources that include LibTorch once for several
# test programs, which list $<TARGET_OBJECTS:NAME> among their sources.
function(offprof_test_objects name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE offprof_compile_options ${ARG_LIBS} GTest::gmock)
  offprof_compile_test(${name} TRUE)
endfunction()

# offprof_cuda_cases(NAME FILTER): registers the cases of program NAME that need a GPU, with the label `gpu`. If
# there is a driver, or if OFFPROF_REQUIRE_CUDA is set, each case is an entry NAME.SUITE.CASE. Otherwise all of
# them are one entry, which is skipped.
function(offprof_cuda_cases program filter)
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${program}_cuda_cases.cmake")
  file(GENERATE OUTPUT "${script}" CONTENT "set(program \"$<TARGET_FILE:${program}>\")
set(filter \"${filter}\")
set(reports \"${OFFPROF_TEST_REPORTS}\")
include(\"${OFFPROF_CUDA_CASES_SCRIPT}\")
")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${script}")
endfunction()

# The Python environment of scripts/setup.sh --python. It has the LibTorch of this build, if there is one.
if(NOT OFFPROF_WITH_ENGINE)
  set(test_python "${CMAKE_SOURCE_DIR}/.deps/python/bin/python")
endif()
set(OFFPROF_TEST_PYTHON "${test_python}" CACHE FILEPATH "Python that runs the Python tests")

# offprof_python_test(NAME file_test.py... [PATH folder...] [COST seconds]): adds files of tests for pytest as one CTest
# entry. PATH: folders for the tests to import from. Without the Python environment there are no such entries.
function(offprof_python_test name)
  cmake_parse_arguments(ARG "" "COST" "PATH" ${ARGN})
  if(NOT EXISTS "${OFFPROF_TEST_PYTHON}")
    message(STATUS "${name} is left out: scripts/setup.sh --python installs its Python")
    return()
  endif()
  list(TRANSFORM ARG_UNPARSED_ARGUMENTS PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
  list(JOIN ARG_PATH ":" path)
  offprof_add_test(NAME ${name}
    COMMAND "${OFFPROF_TEST_PYTHON}" -m pytest -q -p no:cacheprovider
      "--junitxml=${OFFPROF_TEST_REPORTS}/${name}.xml" ${ARG_UNPARSED_ARGUMENTS})
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "OFFPROF_BUILD=${CMAKE_BINARY_DIR};PYTHONPATH=${path};PYTHONDONTWRITEBYTECODE=1")
  if(ARG_COST)
    set_tests_properties(${name} PROPERTIES COST ${ARG_COST})
  endif()
endfunction()
