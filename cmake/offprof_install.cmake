# Rules of `cmake --install`, and CPack's package of the small flavour. Included after all targets.
#
# The program finds everything relative to itself (cli/plugin/engine_loader.h), so an installation can be moved.
#
#   prefix/bin/offprof                 the program
#   prefix/lib/offprof                 the engine, the CUDA device, virtual_gpu/, python/offprof
#   prefix/share                       man pages, completions, GPU profiles, licences
#
# A wheel (scikit-build-core sets SKBUILD) has the same parts in the Python package itself, beside which torch is.
if(SKBUILD)
  set(program_dir offprof/bin)
  set(plugin_dir offprof)
  set(python_dir offprof)
  set(share_dir offprof/share)
  set(library_rpath "$ORIGIN/../torch/lib" ${cuda_rpath})
else()
  set(program_dir bin)
  set(plugin_dir lib/offprof)
  set(python_dir lib/offprof/python/offprof)
  set(share_dir share)
  set(library_rpath "${torch_dir}/lib" ${cuda_rpath})
endif()
set(CMAKE_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
install(TARGETS offprof RUNTIME DESTINATION ${program_dir})

# --- man pages, completions ---

# The program itself knows its command line.
set(generated_dir "${CMAKE_BINARY_DIR}/share")
add_custom_command(OUTPUT "${generated_dir}/stamp"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${generated_dir}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${generated_dir}"
  COMMAND offprof man --directory "${generated_dir}/man1"
  COMMAND sh -c "gzip -9n '${generated_dir}'/man1/*.1"
  COMMAND offprof completion bash -o "${generated_dir}/offprof"
  COMMAND offprof completion zsh -o "${generated_dir}/_offprof"
  COMMAND offprof completion fish -o "${generated_dir}/offprof.fish"
  COMMAND "${CMAKE_COMMAND}" -E touch "${generated_dir}/stamp"
  DEPENDS offprof COMMENT "Writing man pages and completions" VERBATIM)
add_custom_target(offprof_manual ALL DEPENDS "${generated_dir}/stamp")
install(DIRECTORY "${generated_dir}/man1" DESTINATION ${share_dir}/man)
install(FILES "${generated_dir}/offprof" DESTINATION ${share_dir}/bash-completion/completions)
install(FILES "${generated_dir}/_offprof" DESTINATION ${share_dir}/zsh/vendor-completions)
install(FILES "${generated_dir}/offprof.fish" DESTINATION ${share_dir}/fish/vendor_completions.d)

# --- profiles, licences ---

install(DIRECTORY "${CMAKE_SOURCE_DIR}/engine/devices/virtual_gpu/model/profiles"
  "${CMAKE_SOURCE_DIR}/engine/devices/virtual_gpu/collectives/clusters" DESTINATION ${share_dir}/offprof)

# Libraries whose code is in the build: header-only ones, and those that are linked statically.
set(bundled CLI11 fmt nlohmann_json pugixml RapidJSON tomlplusplus xxHash)
get_property(has_liburing GLOBAL PROPERTY OFFPROF_HAS_LIBURING)
if(OFFPROF_STATIC_LIBRARIES AND has_liburing)
  list(APPEND bundled liburing)
endif()
if(TARGET offprof_extension)
  list(APPEND bundled pybind11)
endif()
set(licences "${CMAKE_BINARY_DIR}/copyright")
file(READ "${CMAKE_SOURCE_DIR}/LICENSE" text)
string(PREPEND text "offprof is licensed under the Apache License 2.0, and contains code of: ${bundled}.\n"
  "The licence of offprof is followed by theirs.\n\n")
string(REPLACE ";" ", " text "${text}")
foreach(library IN LISTS bundled)
  file(READ "${CMAKE_SOURCE_DIR}/cmake/licences/${library}.txt" licence)
  string(APPEND text "\n--- ${library} ---\n\n${licence}")
endforeach()
file(WRITE "${licences}" "${text}")
install(FILES "${licences}" DESTINATION ${share_dir}/doc/offprof)
set(changelog "${CMAKE_BINARY_DIR}/changelog.gz")
add_custom_command(OUTPUT "${changelog}" COMMAND sh -c "gzip -9nc '${CMAKE_SOURCE_DIR}/CHANGELOG.md' > '${changelog}'"
  DEPENDS "${CMAKE_SOURCE_DIR}/CHANGELOG.md" VERBATIM)
add_custom_target(offprof_changelog ALL DEPENDS "${changelog}")
install(FILES "${changelog}" DESTINATION ${share_dir}/doc/offprof)

# --- engine, Python package ---

if(OFFPROF_WITH_ENGINE)
  set_target_properties(offprof_engine offprof_cuda PROPERTIES INSTALL_RPATH "${library_rpath}")
  install(TARGETS offprof_engine offprof_cuda LIBRARY DESTINATION ${plugin_dir})
  get_property(stand_ins GLOBAL PROPERTY OFFPROF_STAND_INS)
  install(TARGETS ${stand_ins} offprof_virtual_gpu offprof_virtual_gpu_opener
    LIBRARY DESTINATION ${plugin_dir}/virtual_gpu)
endif()
if(TARGET offprof_extension)
  set_target_properties(offprof_extension PROPERTIES INSTALL_RPATH "${library_rpath}")
  install(TARGETS offprof_extension LIBRARY DESTINATION ${python_dir})
  install(DIRECTORY "${CMAKE_SOURCE_DIR}/python/offprof/" DESTINATION ${python_dir}
    PATTERN "__pycache__" EXCLUDE)
  install(FILES "${CMAKE_BINARY_DIR}/python/offprof/torch_version.py" DESTINATION ${python_dir})
  # The package looks for the libraries in its own folder.
  if(NOT SKBUILD)
    foreach(name liboffprof_cuda.so virtual_gpu)
      install(CODE "file(CREATE_LINK \"../../${name}\" \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${python_dir}/${name}\" SYMBOLIC)")
    endforeach()
  endif()
endif()

if(SKBUILD)
  add_custom_target(offprof_wheel DEPENDS offprof offprof_engine offprof_python offprof_manual offprof_changelog)
  return()
endif()

# --- the package of the small flavour ---

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME offprof)
set(CPACK_PACKAGE_CONTACT "The developers of offprof <offprof@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "profiler and simulator for activation offloading")
set(CPACK_PACKAGE_DESCRIPTION "offprof predicts what activation offloading saves in memory and costs in time.
This package has the commands that read traces, such as tune, simulate and
gate. It has no engine: to record traces, install the Python package.")
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# The solver is opened on demand.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS coinor-libclp1)
include(CPack)
