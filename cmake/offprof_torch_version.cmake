# Chooses the LibTorch to build with, and checks that offprof supports it.
#
# Sets
#   torch_dir                  its folder, with lib/ and include/ in it
#   cuda_include_dirs          folders of the headers of CUDA and CUPTI: of NVIDIA's packages beside torch, or else of
#                              a CUDA Toolkit
#   cuda_lib_dirs              folders of their libraries
#   cuda_rpath                 those in which LibTorch itself does not look
#   OFFPROF_LIBTORCH_VERSION   its version: 2.11.0
#   OFFPROF_CUDA_VERSION       the version of CUDA that it is built for: 13.0
#   OFFPROF_TORCH_VERSIONS     the minor versions that offprof supports, as a list
#   test_python                the Python of scripts/setup.sh --python that has this torch
#   OFFPROF_CUBLAS_VERSION, OFFPROF_CUDNN_VERSION   versions of the libraries that it depends on, from torch_versions.txt
set(OFFPROF_TORCH_VERSION "" CACHE STRING
  "Version of LibTorch, such as 2.15, which scripts/setup.sh --torch has installed; empty: the default, or any of the two below")
set(OFFPROF_TORCH_PYTHON "" CACHE FILEPATH "Python whose torch to build with; empty: none")
set(OFFPROF_LIBTORCH_DIR "" CACHE PATH "Folder of LibTorch; empty: where scripts/setup.sh installs it")

set(torch_versions_file "${CMAKE_CURRENT_LIST_DIR}/torch_versions.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${torch_versions_file}")
file(STRINGS "${torch_versions_file}" torch_version_rows REGEX "^[0-9]")
string(REGEX REPLACE "([0-9]+\\.[0-9]+)\\.[^;]*" "\\1" OFFPROF_TORCH_VERSIONS "${torch_version_rows}")
list(GET OFFPROF_TORCH_VERSIONS 0 OFFPROF_DEFAULT_TORCH)

# offprof_torch_row(OUT VERSION): sets OUT to the line of torch_versions.txt for this version, as a list; empty if there
# is none. All patch versions of a minor version have the same line.
function(offprof_torch_row out version)
  string(REGEX MATCH "^[0-9]+\\.[0-9]+" minor "${version}")
  set(${out} "" PARENT_SCOPE)
  foreach(row IN LISTS torch_version_rows)
    if(row MATCHES "^${minor}\\.")
      string(REGEX REPLACE " +" ";" row "${row}")
      set(${out} "${row}" PARENT_SCOPE)
    endif()
  endforeach()
endfunction()

# Ends the configuration with a message, and with the ways to get a LibTorch that works.
function(offprof_refuse_torch)
  list(JOIN OFFPROF_TORCH_VERSIONS ", " supported)
  message(FATAL_ERROR ${ARGV} "\n"
    "  offprof needs LibTorch ${supported}, built for CUDA 13. Do one of:\n"
    "    scripts/setup.sh --torch ${OFFPROF_DEFAULT_TORCH} installs one, and -DOFFPROF_TORCH_VERSION=${OFFPROF_DEFAULT_TORCH} selects it\n"
    "    -DOFFPROF_TORCH_PYTHON=PATH takes the torch of a Python: python3 -m pip install torch==${OFFPROF_DEFAULT_TORCH}.*\n"
    "    cmake --preset small builds without LibTorch")
endfunction()

offprof_torch_row(row "${OFFPROF_TORCH_VERSION}")
if(NOT OFFPROF_TORCH_VERSION STREQUAL "" AND NOT row)
  offprof_refuse_torch("OFFPROF_TORCH_VERSION is '${OFFPROF_TORCH_VERSION}', which offprof does not support.")
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" torch_minor "${OFFPROF_TORCH_VERSION}")
set(test_python "${CMAKE_SOURCE_DIR}/.deps/python/bin/python")

# offprof_torch_of_python(OUT PYTHON): sets OUT to the folder that has the torch of a Python; empty if it has none.
# Importing torch could fail for reasons that do not matter for a build. pip hides the packages of the environment that
# it builds a wheel for with the two variables.
function(offprof_torch_of_python out python)
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env --unset=PYTHONPATH --unset=PYTHONNOUSERSITE "${python}" -c
      "import importlib.util as util, os; print(os.path.dirname(os.path.dirname(util.find_spec('torch').origin)), end='')"
    OUTPUT_VARIABLE folder RESULT_VARIABLE failure ERROR_QUIET)
  if(failure)
    set(folder "")
  endif()
  set(${out} "${folder}" PARENT_SCOPE)
endfunction()

# Without any of the options, the first of these: for a wheel the torch of its Python; Torch_DIR and CMAKE_PREFIX_PATH,
# as for find_package(Torch); what scripts/setup.sh has installed; the torch of python3.
if(OFFPROF_TORCH_VERSION STREQUAL "" AND OFFPROF_TORCH_PYTHON STREQUAL "" AND OFFPROF_LIBTORCH_DIR STREQUAL "")
  set(given_torch "")
  foreach(prefix IN LISTS CMAKE_PREFIX_PATH)
    if(EXISTS "${prefix}/lib/libtorch_cpu.so")
      set(given_torch "${prefix}")
    endif()
  endforeach()
  if(Torch_DIR)
    get_filename_component(given_torch "${Torch_DIR}/../../.." ABSOLUTE)
  endif()
  if(SKBUILD)
    set(OFFPROF_TORCH_PYTHON "${Python3_EXECUTABLE}")
  elseif(given_torch)
    set(OFFPROF_LIBTORCH_DIR "${given_torch}")
  elseif(NOT EXISTS "${CMAKE_SOURCE_DIR}/.deps/libtorch/torch/lib/libtorch_cpu.so")
    find_program(OFFPROF_SYSTEM_PYTHON python3)
    mark_as_advanced(OFFPROF_SYSTEM_PYTHON)
    offprof_torch_of_python(found "${OFFPROF_SYSTEM_PYTHON}")
    if(found)
      set(OFFPROF_TORCH_PYTHON "${OFFPROF_SYSTEM_PYTHON}")
    endif()
  endif()
endif()

if(OFFPROF_TORCH_PYTHON)
  offprof_torch_of_python(libtorch_dir "${OFFPROF_TORCH_PYTHON}")
  if(NOT libtorch_dir)
    offprof_refuse_torch("There is no torch in the Python ${OFFPROF_TORCH_PYTHON}.")
  endif()
  set(Python3_EXECUTABLE "${OFFPROF_TORCH_PYTHON}")
  set(test_python "${OFFPROF_TORCH_PYTHON}")
elseif(OFFPROF_LIBTORCH_DIR)
  set(libtorch_dir "${OFFPROF_LIBTORCH_DIR}")
elseif(torch_minor STREQUAL "" OR torch_minor STREQUAL OFFPROF_DEFAULT_TORCH)
  set(libtorch_dir "${CMAKE_SOURCE_DIR}/.deps/libtorch")
else()
  set(libtorch_dir "${CMAKE_SOURCE_DIR}/.deps/libtorch-${torch_minor}")
  set(test_python "${CMAKE_SOURCE_DIR}/.deps/python-${torch_minor}/bin/python")
endif()

# The folder of a Python has torch in it; an archive of LibTorch is torch itself.
set(torch_dir "${libtorch_dir}/torch")
if(EXISTS "${libtorch_dir}/lib/libtorch_cpu.so")
  set(torch_dir "${libtorch_dir}")
  get_filename_component(libtorch_dir "${libtorch_dir}" DIRECTORY)
endif()
if(NOT EXISTS "${torch_dir}/lib/libtorch_cpu.so")
  offprof_refuse_torch("There is no LibTorch in ${libtorch_dir}.")
endif()
if(EXISTS "${torch_dir}/lib/libtorch_hip.so")
  offprof_refuse_torch("The LibTorch in ${torch_dir} is built for ROCm.")
endif()
if(NOT EXISTS "${torch_dir}/lib/libtorch_cuda.so")
  offprof_refuse_torch("The LibTorch in ${torch_dir} is built without CUDA.")
endif()
file(STRINGS "${torch_dir}/include/torch/headeronly/version.h" torch_version_lines
  REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX MATCHALL "[0-9]+" torch_version_parts "${torch_version_lines}")
list(JOIN torch_version_parts "." OFFPROF_LIBTORCH_VERSION)
offprof_torch_row(row "${OFFPROF_LIBTORCH_VERSION}")
if(NOT row)
  offprof_refuse_torch("The LibTorch in ${torch_dir} is version ${OFFPROF_LIBTORCH_VERSION}, which offprof does not support.")
endif()
if(torch_minor AND NOT OFFPROF_LIBTORCH_VERSION MATCHES "^${torch_minor}\\.")
  offprof_refuse_torch(
    "OFFPROF_TORCH_VERSION is ${OFFPROF_TORCH_VERSION}, but the LibTorch in ${torch_dir} is version ${OFFPROF_LIBTORCH_VERSION}.")
endif()
list(GET row 3 OFFPROF_CUBLAS_VERSION)
list(GET row 4 OFFPROF_CUDNN_VERSION)

set(cuda_include_dirs "${libtorch_dir}/nvidia/cu13/include")
set(cuda_lib_dirs "${libtorch_dir}/nvidia/cu13/lib")
set(cuda_rpath "")
set(cuda_from "NVIDIA's packages beside torch")
if(NOT EXISTS "${cuda_include_dirs}/cuda_runtime_api.h" OR NOT EXISTS "${cuda_include_dirs}/cupti.h")
  if(NOT CMAKE_SCRIPT_MODE_FILE)  # the test of this file runs it without a project
    find_package(CUDAToolkit 13 QUIET)
  endif()
  if(NOT CUDAToolkit_FOUND OR NOT CUDAToolkit_CUPTI_INCLUDE_DIR)
    offprof_refuse_torch("${libtorch_dir} lacks nvidia/cu13/include/cuda_runtime_api.h or cupti.h, and there is no CUDA Toolkit 13 "
      "with CUPTI. So the torch is built for another CUDA than 13, or nvidia-cuda-runtime and nvidia-cuda-cupti are missing.")
  endif()
  set(cuda_include_dirs "${CUDAToolkit_INCLUDE_DIRS}" "${CUDAToolkit_CUPTI_INCLUDE_DIR}")
  get_filename_component(cupti_lib_dir "${CUDA_cupti_LIBRARY}" DIRECTORY)
  set(cuda_lib_dirs "${CUDAToolkit_LIBRARY_DIR}" "${cupti_lib_dir}")
  set(cuda_rpath ${cuda_lib_dirs})
  set(cuda_from "the CUDA Toolkit ${CUDAToolkit_VERSION}")
endif()
list(GET cuda_include_dirs 0 cuda_include_dir)
file(STRINGS "${cuda_include_dir}/cuda_runtime_api.h" cudart_version REGEX "define CUDART_VERSION ")
string(REGEX REPLACE ".*CUDART_VERSION +([0-9]+)0([0-9])0.*" "\\1.\\2" OFFPROF_CUDA_VERSION "${cudart_version}")
message(STATUS "LibTorch ${OFFPROF_LIBTORCH_VERSION} in ${torch_dir}; CUDA and CUPTI of ${cuda_from}")
