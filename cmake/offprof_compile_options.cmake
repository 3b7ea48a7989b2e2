# An interface target with the language level, the warnings and the sanitizers for all our targets.
add_library(offprof_compile_options INTERFACE)
target_compile_features(offprof_compile_options INTERFACE cxx_std_20)
target_include_directories(offprof_compile_options INTERFACE "${CMAKE_CURRENT_LIST_DIR}/..")
target_compile_options(offprof_compile_options INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wnon-virtual-dtor -Woverloaded-virtual)
# g++ 12 reports overlapping memcpy in inlined std::string concatenations of correct code (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(offprof_compile_options INTERFACE -Wno-restrict)
endif()
# A unity build includes all source files, so g++ treats their unnamed namespaces like those of a header.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  target_compile_options(offprof_compile_options INTERFACE -Wno-subobject-linkage)
endif()
if(OFFPROF_WERROR)
  target_compile_options(offprof_compile_options INTERFACE -Werror)
endif()
if(OFFPROF_SANITIZE)
  set(sanitizers "${OFFPROF_SANITIZE}")
  if(OFFPROF_SANITIZE STREQUAL "address")
    set(sanitizers address,undefined)
  elseif(NOT OFFPROF_SANITIZE STREQUAL "thread")
    message(FATAL_ERROR "OFFPROF_SANITIZE is '${OFFPROF_SANITIZE}'; it can be address, thread, or empty")
  endif()
  target_compile_options(offprof_compile_options INTERFACE -fsanitize=${sanitizers} -fno-omit-frame-pointer)
  # GCC reports uninitialized values in the code of the sanitizer's checks.
  target_compile_options(offprof_compile_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  if(OFFPROF_SANITIZE STREQUAL "address")
    # Undefined behaviour ends the program as well, so that no test passes with it. LibTorch and the stand-in
    # libraries hide the type information that `vptr` needs. It is disabled last, since `undefined` enables it.
    target_compile_options(offprof_compile_options INTERFACE -fno-sanitize-recover=undefined -fno-sanitize=vptr)
  endif()
  target_link_options(offprof_compile_options INTERFACE -fsanitize=${sanitizers})
endif()
if(OFFPROF_SANITIZE AND NOT OFFPROF_FUZZ)
  target_sources(offprof_compile_options INTERFACE
    $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:${CMAKE_CURRENT_LIST_DIR}/sanitizer_defaults.cpp>)
endif()
if(OFFPROF_FUZZ)
  # Every report of a sanitizer ends the process, so that libFuzzer notices it. "undefined" does not include
  # out-of-range casts of doubles.
  target_compile_options(offprof_compile_options INTERFACE
    -fsanitize=fuzzer-no-link,float-cast-overflow -fno-sanitize-recover=all)
endif()
if(OFFPROF_FUZZ AND NOT OFFPROF_SANITIZE)
  # Checks that are cheap enough for ten million executions: these kinds of undefined behaviour end the process
  # with an illegal instruction, the standard library checks indices, and libFuzzer does not trace every
  # comparison.
  target_compile_options(offprof_compile_options INTERFACE
    -fsanitize=signed-integer-overflow,integer-divide-by-zero,shift,bounds,enum,bool,return,unreachable
    -fsanitize-trap=all -fno-sanitize-coverage=trace-cmp)
  target_compile_definitions(offprof_compile_options INTERFACE _GLIBCXX_ASSERTIONS)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
