# The stand-in libraries: one for each CUDA library that LibTorch links, with the same soname and symbol versions. They
# are in their own folder, so that nothing finds them by chance.
set(stand_in_dir "${CMAKE_BINARY_DIR}/virtual_gpu")
set(torch_libs "")
foreach(lib c10_cuda caffe2_nvrtc torch_cpu torch_cuda torch_cuda_linalg torch_nvshmem)
  list(APPEND torch_libs "${torch_dir}/lib/lib${lib}.so")
endforeach()
# The library that `import torch` opens in Python. A LibTorch without Python lacks it.
if(EXISTS "${torch_dir}/lib/libtorch_python.so")
  list(APPEND torch_libs "${torch_dir}/lib/libtorch_python.so")
endif()
set(undefined "${CMAKE_CURRENT_BINARY_DIR}/undefined.txt")
add_custom_command(OUTPUT "${undefined}"
  COMMAND sh -c "nm -D --undefined-only \"$@\" | awk 'NF >= 2 { print $NF }' | sort -u > '${undefined}'" sh ${torch_libs}
  DEPENDS ${torch_libs} VERBATIM)

add_library(offprof_virtual_gpu SHARED runtime/access.cpp runtime/device_properties.cpp)
target_link_libraries(offprof_virtual_gpu PRIVATE offprof_engine_devices_virtual_gpu_state offprof_cuda_headers)
target_link_options(offprof_virtual_gpu PRIVATE
  "LINKER:--version-script,${CMAKE_CURRENT_SOURCE_DIR}/virtual_gpu.map" "LINKER:-z,defs")
set_target_properties(offprof_virtual_gpu PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${stand_in_dir}" LINK_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/virtual_gpu.map")

# Programs that link this target first, before LibTorch, use the virtual GPU.
add_library(offprof_virtual_cuda INTERFACE)

# offprof_stand_in(SONAME NODE PATTERN [written.cpp...]): adds a stand-in library. See make_stubs.sh for NODE and PATTERN.
# The target's name is SONAME with dashes for dots.
function(offprof_stand_in soname node pattern)
  string(REPLACE "." "-" target "${soname}")
  set(stubs "${CMAKE_CURRENT_BINARY_DIR}/${target}_stubs.cpp")
  set(versions "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  set(objects "")
  if(ARGN)
    add_library(${target}-written OBJECT ${ARGN})
    target_link_libraries(${target}-written PRIVATE offprof_compile_options offprof_cuda_headers)
    set(objects $<TARGET_OBJECTS:${target}-written>)
  endif()
  add_custom_command(OUTPUT "${stubs}" "${versions}"
    COMMAND bash "${CMAKE_CURRENT_SOURCE_DIR}/make_stubs.sh" "${undefined}" ${node} "${pattern}" "${stubs}" "${versions}"
      ${objects}
    DEPENDS make_stubs.sh "${undefined}" ${objects} COMMAND_EXPAND_LISTS VERBATIM)
  add_library(${target} SHARED "${stubs}" ${objects})
  target_link_libraries(${target} PRIVATE offprof_virtual_gpu ${CMAKE_DL_LIBS})
  # Uses the link options of all targets, which the sanitizers need, but not the warnings, which stubs would trigger.
  target_link_options(${target} PRIVATE "LINKER:--version-script,${versions}" "LINKER:-z,defs"
    $<TARGET_PROPERTY:offprof_compile_options,INTERFACE_LINK_OPTIONS>)
  set_target_properties(${target} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME "${soname}"
    LIBRARY_OUTPUT_DIRECTORY "${stand_in_dir}" LINK_DEPENDS "${versions}"
    BUILD_RPATH_USE_ORIGIN ON BUILD_RPATH "$ORIGIN" INSTALL_RPATH "$ORIGIN" UNITY_BUILD OFF)
  target_link_libraries(offprof_virtual_cuda INTERFACE $<LINK_LIBRARY:offprof_needed,${target}>)
  set_property(GLOBAL APPEND PROPERTY OFFPROF_STAND_INS ${target})
endfunction()

offprof_stand_in(libcudart.so.13 libcudart.so.13 -
  runtime/cudart_device.cpp runtime/cudart_error.cpp runtime/cudart_kernel.cpp runtime/cudart_memory.cpp
  runtime/cudart_stream.cpp runtime/cudart_unsupported.cpp)
offprof_stand_in(libcuda.so.1 libcuda.so.1 "cu[A-EG-Z]|cuFunc" runtime/driver.cpp runtime/driver_module.cpp)
offprof_stand_in(libcublas.so.13 libcublas.so.13 - runtime/cublas.cpp)
offprof_stand_in(libcublasLt.so.13 libcublasLt.so.13 - runtime/cublaslt.cpp)
offprof_stand_in(libcudnn.so.9 libcudnn.so.9 - runtime/cudnn.cpp runtime/cudnn_backend.cpp runtime/cudnn_rnn.cpp)
offprof_stand_in(libcufft.so.12 libcufft.so.12 - runtime/cufft.cpp)
offprof_stand_in(libcufile.so.0 libcufile.so.0 cuFile runtime/cufile.cpp)
offprof_stand_in(libcupti.so.13 libcupti.so.13 - runtime/cupti.cpp runtime/cupti_recorder.cpp)
offprof_stand_in(libcurand.so.10 libcurand.so.10 curand)
offprof_stand_in(libcusolver.so.12 libcusolver.so.12 - runtime/cusolver.cpp)
offprof_stand_in(libcusparse.so.12 libcusparse.so.12 -)
offprof_stand_in(libcusparseLt.so.0 libcusparseLt.so.0 cusparseLt)
offprof_stand_in(libnccl.so.2 libnccl.so.2 nccl runtime/nccl.cpp)
# LibTorch opens NVML by its name, and does not link it: its symbols need no particular version.
offprof_stand_in(libnvidia-ml.so.1 NVML nvml runtime/nvml.cpp)
offprof_stand_in(libnvrtc.so.13 libnvrtc.so.13 - runtime/nvrtc.cpp)
offprof_stand_in(libnvshmem_host.so.3 NVSHMEM nvshmem)

# The versions of the libraries that this LibTorch depends on: "13.4.1" is defined as 13, 4, 1.
string(REPLACE "." "," cublas_version "${OFFPROF_CUBLAS_VERSION}")
string(REPLACE "." "," cudnn_version "${OFFPROF_CUDNN_VERSION}")
foreach(target libcublas-so-13-written libcublasLt-so-13-written)
  target_compile_definitions(${target} PRIVATE OFFPROF_CUBLAS_VERSION=${cublas_version})
endforeach()
target_compile_definitions(libcudnn-so-9-written PRIVATE OFFPROF_CUDNN_VERSION=${cudnn_version})

get_property(stand_ins GLOBAL PROPERTY OFFPROF_STAND_INS)
add_custom_target(offprof_stand_ins ALL DEPENDS ${stand_ins})

target_link_libraries(offprof_virtual_cuda INTERFACE offprof_compile_options offprof_engine_devices_virtual_gpu_model
  $<LINK_LIBRARY:offprof_needed,offprof_virtual_gpu>)

if(OFFPROF_BUILD_TESTS)
  offprof_test(cudart_test runtime/cudart_test.cpp runtime/cupti_test.cpp runtime/driver_test.cpp
    runtime/nccl_test.cpp
    LIBS offprof_virtual_cuda offprof_cuda_headers)
  offprof_test(virtual_torch_test TORCH virtual_torch_test.cpp LIBS offprof_virtual_cuda offprof_libtorch_cuda)
  offprof_test(open_virtual_gpu_test open_test.cpp LIBS offprof_engine_devices_virtual_gpu)
  target_compile_definitions(open_virtual_gpu_test PRIVATE
    OFFPROF_STAND_IN_DIR="${stand_in_dir}"
    OFFPROF_REAL_CUDART="${cuda_lib_dirs}/libcudart.so.13"
    OFFPROF_LIBTORCH_CUDA="${torch_dir}/lib/libtorch_cuda.so")
  add_dependencies(open_virtual_gpu_test offprof_stand_ins)
endif()
