# Imported targets for LibTorch from the PyPI wheel. find_package(Torch) would need nvcc and a CUDA try-run.
include(offprof_torch_version)

add_library(offprof_libtorch INTERFACE)
# -idirafter: the wheel's include folder contains its own fmt, which must not take precedence over the one we
# link.
foreach(dir include include/torch/csrc/api/include)
  target_compile_options(offprof_libtorch INTERFACE "SHELL:-idirafter ${torch_dir}/${dir}")
endforeach()
target_compile_definitions(offprof_libtorch INTERFACE USE_DISTRIBUTED=0)
foreach(lib c10 torch_cpu)
  target_link_libraries(offprof_libtorch INTERFACE "${torch_dir}/lib/lib${lib}.so")
endforeach()
# libtorch_cpu needs the CUDA runtime and CUPTI from the wheels beside it. Its own RPATH finds them only at run
# time.
target_link_options(offprof_libtorch INTERFACE "LINKER:-rpath-link,${torch_dir}/lib")
# A wheel must not look in folders of the machine that built it.
if(NOT SKBUILD)
  target_link_options(offprof_libtorch INTERFACE "LINKER:-rpath,${torch_dir}/lib")
endif()
foreach(dir IN LISTS cuda_lib_dirs)
  target_link_options(offprof_libtorch INTERFACE "LINKER:-rpath-link,${dir}")
endforeach()
foreach(dir IN LISTS cuda_rpath)
  target_link_options(offprof_libtorch INTERFACE "LINKER:-rpath,${dir}")
endforeach()
target_link_options(offprof_libtorch INTERFACE "LINKER:--as-needed")

# LibTorch's Python part, for extensions. Missing if there are no headers of the Python that the wheel is for.
file(GLOB torch_module "${torch_dir}/_C.cpython-*.so")
if(torch_module MATCHES "_C\\.cpython-3([0-9]+)-")
  find_package(Python3 3.${CMAKE_MATCH_1} EXACT COMPONENTS Interpreter Development.Module)
endif()
if(Python3_Development.Module_FOUND AND EXISTS "${torch_dir}/lib/libtorch_python.so")
  add_library(offprof_libtorch_python INTERFACE)
  target_include_directories(offprof_libtorch_python SYSTEM INTERFACE "${Python3_INCLUDE_DIRS}")
  target_link_libraries(offprof_libtorch_python INTERFACE offprof_libtorch "${torch_dir}/lib/libtorch_python.so")
  # It needs CUDA libraries that a machine without a GPU lacks.
  target_link_options(offprof_libtorch_python INTERFACE "LINKER:--allow-shlib-undefined")
else()
  message(STATUS "No Python headers or no libtorch_python: the Python package is not built")
endif()

# Links libraries even if the program uses no symbol of theirs: they register operators when they are loaded, or
# replace other libraries.
set(CMAKE_CXX_LINK_LIBRARY_USING_offprof_needed_SUPPORTED TRUE)
set(CMAKE_CXX_LINK_LIBRARY_USING_offprof_needed
  "LINKER:--push-state,--no-as-needed" "<LINK_ITEM>" "LINKER:--pop-state")

# The CUDA headers, and the header of the CUDA Toolkit that those of the runtime's wheel include.
add_library(offprof_cuda_headers INTERFACE)
target_include_directories(offprof_cuda_headers SYSTEM INTERFACE
  "${CMAKE_CURRENT_LIST_DIR}/../engine/devices/virtual_gpu/runtime/cuda_crt" ${cuda_include_dirs})

# LibTorch with its CUDA part. The linker does not look for the CUDA libraries that it needs: they may be
# elsewhere, or be the virtual GPU's.
add_library(offprof_libtorch_cuda INTERFACE)
target_link_libraries(offprof_libtorch_cuda INTERFACE offprof_libtorch offprof_cuda_headers)
foreach(lib c10_cuda torch_cuda)
  target_link_libraries(offprof_libtorch_cuda INTERFACE $<LINK_LIBRARY:offprof_needed,${torch_dir}/lib/lib${lib}.so>)
endforeach()
target_link_options(offprof_libtorch_cuda INTERFACE "LINKER:--allow-shlib-undefined")
