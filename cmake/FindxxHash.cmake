# xxHash, a fast header-only checksum: the target xxHash::Headers. The Debian package is libxxhash-dev.
find_path(xxHash_INCLUDE_DIR xxhash.h)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(xxHash REQUIRED_VARS xxHash_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "scripts/setup.sh installs it (Debian: libxxhash-dev)")
if(xxHash_FOUND AND NOT TARGET xxHash::Headers)
  add_library(xxHash::Headers INTERFACE IMPORTED)
  set_target_properties(xxHash::Headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${xxHash_INCLUDE_DIR}")
endif()
mark_as_advanced(xxHash_INCLUDE_DIR)
