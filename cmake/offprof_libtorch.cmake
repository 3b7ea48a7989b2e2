# LibTorch as it lies in the PyPI wheel, as own imported targets: find_package(Torch) would need nvcc and a CUDA try-run.
set(torch_dir "${OFFPROF_LIBTORCH_DIR}/torch")
if(NOT EXISTS "${torch_dir}/lib/libtorch_cpu.so")
  message(FATAL_ERROR
    "No LibTorch in ${OFFPROF_LIBTORCH_DIR}.\n"
    "  Run scripts/setup.sh, or set OFFPROF_LIBTORCH_DIR, or build the small flavour: cmake --preset small")
endif()
file(STRINGS "${torch_dir}/include/torch/headeronly/version.h" torch_version_lines
  REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX MATCHALL "[0-9]+" torch_version_parts "${torch_version_lines}")
list(JOIN torch_version_parts "." OFFPROF_TORCH_VERSION)
if(NOT OFFPROF_TORCH_VERSION VERSION_EQUAL "2.11.0")
  message(FATAL_ERROR "LibTorch in ${OFFPROF_LIBTORCH_DIR} is '${OFFPROF_TORCH_VERSION}'; offprof is written for 2.11.0. Run scripts/setup.sh")
endif()

add_library(offprof_libtorch INTERFACE)
# -idirafter: the wheel's include folder carries an fmt of its own, which must not win over the one we link.
foreach(dir include include/torch/csrc/api/include)
  target_compile_options(offprof_libtorch INTERFACE "SHELL:-idirafter ${torch_dir}/${dir}")
endforeach()
target_compile_definitions(offprof_libtorch INTERFACE USE_DISTRIBUTED=0)
foreach(lib c10 torch_cpu)
  target_link_libraries(offprof_libtorch INTERFACE "${torch_dir}/lib/lib${lib}.so")
endforeach()
# libtorch_cpu needs the CUDA runtime and CUPTI of the wheels beside it, which its own RPATH finds at run time only.
target_link_options(offprof_libtorch INTERFACE
  "LINKER:-rpath,${torch_dir}/lib" "LINKER:-rpath-link,${torch_dir}/lib"
  "LINKER:-rpath-link,${OFFPROF_LIBTORCH_DIR}/nvidia/cu13/lib" "LINKER:--as-needed")
