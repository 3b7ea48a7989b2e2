include(GoogleTest)
# Property tests link rapidcheck_gtest; each run prints its seed, and RC_PARAMS="seed=..." repeats it.
find_package(rapidcheck REQUIRED)

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
