include(GoogleTest)
# Property tests link rapidcheck_gtest; each run prints its seed, and RC_PARAMS="seed=..." repeats it.
find_package(rapidcheck REQUIRED)

# What every test program includes, compiled once: the headers of the test framework are half of a test's compile time.
# Optimizing tests takes as long again, and what they call is optimized anyhow.
set(OFFPROF_TEST_OPTIONS $<$<CONFIG:Release>:-O1>)
file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/tests/precompiled_test.cpp" CONTENT "")
add_library(offprof_precompiled_test OBJECT "${CMAKE_BINARY_DIR}/tests/precompiled_test.cpp")
target_link_libraries(offprof_precompiled_test PRIVATE offprof_compile_options GTest::gmock)
target_compile_options(offprof_precompiled_test PRIVATE ${OFFPROF_TEST_OPTIONS})
target_precompile_headers(offprof_precompiled_test PRIVATE <gmock/gmock.h> <gtest/gtest.h>
  <algorithm> <filesystem> <functional> <map> <optional> <string> <vector>)

# offprof_test(NAME file_test.cpp... LIBS lib... [FILTER cases]): one test program, its cases known to CTest one by one,
# those that FILTER names.
function(offprof_test name)
  cmake_parse_arguments(ARG "" "FILTER" "LIBS" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE offprof_compile_options ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  # Tests name their helpers alike, so their sources are never joined.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST TEST_FILTER "${ARG_FILTER}")
endfunction()

# offprof_device_test(...): as offprof_test, of a program that makes devices.
function(offprof_device_test name)
  offprof_test(${name} ${ARGN})
  # Beside the CUDA library, which it opens.
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  target_include_directories(${name} PRIVATE "${CMAKE_SOURCE_DIR}")
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM offprof_engine_torch)
  add_dependencies(${name} offprof_cuda)
endfunction()

# offprof_cuda_cases(NAME FILTER): the cases of program NAME that need a GPU, as one test NAME_of_cuda, which runs or is
# skipped as a whole.
function(offprof_cuda_cases program filter)
  add_test(NAME ${program}_of_cuda COMMAND ${program} --gtest_filter=${filter})
  set_tests_properties(${program}_of_cuda PROPERTIES LABELS gpu SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endfunction()
